"""Calls of functions are followed by exchanged code, and the script sees none of it: neither in names and stacks nor in warnings."""
