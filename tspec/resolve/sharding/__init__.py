"""`mesh`, `dims` and `layout`: which ranks there are, and which shard of each tensor each holds."""
