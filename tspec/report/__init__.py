"""What a check found, as people and programs read it: findings with their causes, counts, text and JSON."""
