"""What is likely wrong, or hard to read, in specs that resolve: findings, and their fixes."""

from tspec.lint.autofix import Autofixed as Autofixed
from tspec.lint.autofix import autofix as autofix
from tspec.lint.finding import Edit as Edit
from tspec.lint.finding import Finding as Finding
from tspec.lint.finding import Fix as Fix
from tspec.lint.lint import lint as lint
from tspec.lint.settings import Settings as Settings
