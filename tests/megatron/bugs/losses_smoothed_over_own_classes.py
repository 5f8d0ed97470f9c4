"""With label smoothing each rank spreads a part of the label over the classes that it has, and not over all.

Source: Megatron-LM issues 7452, finding 1, 7464 and 737. megatron-core 0.16.1 has it as it is, with `label_smoothing`.
"""

from __future__ import annotations

from functools import partial

LAYOUT = "tp=2"
FOUND = ("losses_agree", 1, (0, 1), "token_losses")


def put_in() -> None:
    """A tenth of each label is spread."""
    from megatron.core import tensor_parallel

    tensor_parallel.vocab_parallel_cross_entropy = partial(
        tensor_parallel.vocab_parallel_cross_entropy, label_smoothing=0.1
    )
