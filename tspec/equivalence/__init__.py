"""Runs of a training step that must agree: the same numbers on both sides, recorded, merged by layout, compared."""
