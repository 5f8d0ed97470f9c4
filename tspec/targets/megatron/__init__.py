"""What is Megatron's own: where its steps are, how its tensors are named, and how hooks are attached to its loop.

All but the template runs inside of the job, so it imports `tspec.runtime` only.
"""
