"""Reads of many tensors on a GPU: few kernels for all of them, and one transfer.

On a CPU the functions of torch are as fast, and `tspec.runtime.live.features` uses them. On a GPU each call of torch starts
a kernel of its own, so 100 tensors with ten features took thousands of kernels.
"""
