"""A training script on one process that stands for one rank of many: shapes, placements, reductions."""
