"""What a project says once for all commands: `tspec.toml`, or `[tool.tspec]` in pyproject.toml."""
