"""How two versions of a rule are related, and the job that shows a difference."""
