"""The shard of each tensor that each rank holds: exact index sets, faults of layouts, pictures."""
