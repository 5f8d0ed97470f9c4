"""Without expert parallelism, experts that are not cut over tp are copies that see parts of the tokens.

They are marked as shards and their gradients are not summed.
Source: found by these jobs; megatron-core 0.16.1 has it as it is (the norm of the first step is 0.96619, and
0.96870 on one device).
"""

from __future__ import annotations

LAYOUT = "tp=2,sp,experts=4"
FOUND = ("shards_differ", 1, (0, 1), "decoder.layers.0.mlp.experts.local_experts.0")


def put_in() -> None:
    """It is there."""
