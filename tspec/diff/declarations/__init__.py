"""The pairing of declarations of two sides, and the parts that changed."""
