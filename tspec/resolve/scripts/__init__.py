"""`test`: the rules that it names, and the events of its script."""
