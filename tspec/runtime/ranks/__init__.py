"""Decisions that the ranks of a job make together, and the packets that they exchange for them."""
