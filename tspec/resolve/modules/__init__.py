"""Files, modules and their versions."""
