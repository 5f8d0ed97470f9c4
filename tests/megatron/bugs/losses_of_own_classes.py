"""The losses of tokens are normalised by the classes of one rank alone: the sum of exponentials is not added up over tp.

Source: TTrace 6's class, a missing all-reduce, in the cross entropy of logits that are cut over the vocabulary.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2"
FOUND = ("losses_agree", 1, (0, 1), "token_losses")


def put_in() -> None:
    """The sum is taken anew, of the classes of the rank."""
    from megatron.core.tensor_parallel.cross_entropy import VocabParallelCrossEntropy

    original = VocabParallelCrossEntropy.calculate_cross_entropy_loss

    def loss(exp_logits: Any, predicted_logits: Any, sum_exp_logits: Any) -> Any:
        return original(exp_logits, predicted_logits, exp_logits.sum(dim=-1))

    VocabParallelCrossEntropy.calculate_cross_entropy_loss = staticmethod(loss)
