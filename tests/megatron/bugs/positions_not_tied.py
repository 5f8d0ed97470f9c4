"""The last stage, which predicts further tokens, has its own learned embeddings of positions, and nothing ties them to the first stage's.

Source: found by these jobs; megatron-core 0.16.1 has it as it is.
"""

from __future__ import annotations

LAYOUT = "pp=2,mtp=1,untied"
FOUND = ("stages_hold_equal_copies", 2, (0, 1), "embedding.position_embeddings.weight")


def put_in() -> None:
    """It is there."""
