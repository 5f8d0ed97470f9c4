"""The command line.

Each command is one file here. It imports the code that it needs only when it runs.
"""

from tspec.cli.app import main

__all__ = ["main"]
