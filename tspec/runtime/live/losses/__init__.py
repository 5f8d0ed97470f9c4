"""What is read from a loss when it is computed, or before its backward pass: its autograd graph, its terms, its inputs and targets."""
