"""`mesh`, `dims` and `layout`: which ranks there are, and which piece of each tensor each holds."""
