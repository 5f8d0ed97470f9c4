"""In the job: gives it numbers, records the tensors that an equivalence names, and rewrites them."""
