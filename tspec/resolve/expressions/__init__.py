"""The type checker of expressions."""
