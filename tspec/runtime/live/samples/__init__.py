"""The samples that a job reads, and whether they differ."""
