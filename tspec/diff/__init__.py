"""What changed between two versions of a set of rules, and which way."""
