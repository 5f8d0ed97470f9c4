"""Finds likely errors and hard-to-read parts in specs that resolve, and fixes them."""

from tspec.lint.autofix import FixedFiles as FixedFiles
from tspec.lint.autofix import autofix as autofix
from tspec.lint.finding import Edit as Edit
from tspec.lint.finding import LintFinding as LintFinding
from tspec.lint.finding import SuggestedFix as SuggestedFix
from tspec.lint.lint import lint as lint
from tspec.lint.settings import Settings as Settings
