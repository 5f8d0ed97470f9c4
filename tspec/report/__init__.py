"""The report of a check: findings with their causes, and counts, as text and as data."""
