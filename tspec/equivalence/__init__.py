"""Compares runs of training steps that must agree: both sides begin with the same numbers; their tensors are recorded, merged by layout, and compared."""
