"""From trees to typed rules: modules found, names looked up, types checked."""

from tspec.resolve.load import Loaded as Loaded
from tspec.resolve.load import load as load
from tspec.resolve.load import load_text as load_text
