"""What a job says to a person: findings as they are made, notes, and the summary at the end."""
