"""One lint rule a file. `tspec.lint.registry` lists them."""
