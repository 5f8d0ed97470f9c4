"""The settings of a project for all commands: `tspec.toml`, or `[tool.tspec]` in pyproject.toml."""
