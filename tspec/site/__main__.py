"""Prints the folder whose `sitecustomize` starts the hooks that TSPEC_HOOKS names.

PYTHONPATH=$(python -m tspec.site) TSPEC_HOOKS=hooks.py torchrun … pretrain_gpt.py
"""

from pathlib import Path

print(Path(__file__).resolve().parent)
