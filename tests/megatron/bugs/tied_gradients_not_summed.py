"""Under the distributed optimizer the gradients of the tied embeddings are not summed over the two stages.

Source: TTrace 5, Megatron-LM issues 656 and 844 (embedding and output layer come apart).
"""

from __future__ import annotations

LAYOUT = "pp=2,zero,bf16"
FOUND = ("shared_embeddings_agree", 1, (0, 1), "embedding.word_embeddings.weight")


def put_in() -> None:
    """The sum is left out."""
    import importlib

    finalize = importlib.import_module("megatron.core.distributed.finalize_model_grads")
    finalize._allreduce_word_embedding_grads = lambda *args, **kwargs: None
