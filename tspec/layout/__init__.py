"""Which piece of each tensor each rank holds: exact index sets, faults of layouts, pictures."""
