"""Reports of equivalence: the findings of comparisons of two runs."""
