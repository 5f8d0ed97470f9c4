"""Embeddings are frozen after the optimizer was built, which goes on to decay them.

Source: the class of `requires_grad = False` on a parameter that an optimizer has; main gradients of megatron-core stay there, and are zero.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2"
FOUND = ("frozen_parameters_stay_as_they_are", 1, (0, 1), "embedding.word_embeddings.weight")


def put_in() -> None:
    """The loop freezes the word embeddings of a model that has an optimizer."""
    from tests.megatron import job

    original = job.optimizer_of

    def optimizer_of(config: Any, chunks: Any, layout: Any) -> Any:
        found = original(config, chunks, layout)
        job.freeze(chunks[0])
        return found

    job.optimizer_of = optimizer_of
