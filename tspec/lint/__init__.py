"""What is likely wrong, or hard to read, in specs that resolve: findings, and how to mend them."""

from tspec.lint.finding import Edit as Edit
from tspec.lint.finding import Finding as Finding
from tspec.lint.finding import Fix as Fix
from tspec.lint.lint import lint as lint
from tspec.lint.mend import Mended as Mended
from tspec.lint.mend import mend as mend
from tspec.lint.settings import Settings as Settings
