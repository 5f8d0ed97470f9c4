"""`equivalence` and `replay`: runs that are to agree with one another."""
