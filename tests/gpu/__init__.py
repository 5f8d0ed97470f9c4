"""Tests that need a GPU. Without one they are skipped; `benchmarks/results/gpu.txt` says where they ran last."""
