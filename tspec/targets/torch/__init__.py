"""The target for torch. Its mechanisms find the training loop, so hooks are attached by a `with`
block alone.
"""
