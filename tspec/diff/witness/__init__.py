"""The relation of two versions of a rule, and a job that shows a difference."""
