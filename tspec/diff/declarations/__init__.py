"""Which declaration is which on the two sides, and which parts of it changed."""
