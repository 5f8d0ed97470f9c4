"""The target for Megatron: finds its steps, names its tensors, and attaches hooks to its loop.

All modules but the template run inside the job, so they import `tspec.runtime` only.
"""
