"""The command line. Each command is one file here, and imports its room only when it runs."""

from tspec.cli.app import main

__all__ = ["main"]
