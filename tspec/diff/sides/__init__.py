"""The two sides of a comparison, and where they are read from."""
