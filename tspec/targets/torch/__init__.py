"""What is torch's own: its loops are found by torch's mechanisms, so hooks are attached by a `with` block alone."""
