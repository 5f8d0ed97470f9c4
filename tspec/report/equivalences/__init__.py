"""Reports of equivalence: what comparisons of two runs found."""
