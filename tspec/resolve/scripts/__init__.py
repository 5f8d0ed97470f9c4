"""`test`: the rules that it names, and what happens in its script."""
