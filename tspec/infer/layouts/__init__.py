"""Drafts of layouts: from placements and sharded state dictionaries of a dry run, or from tensors."""
