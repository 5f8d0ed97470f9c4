"""Labels are the tokens themselves: the model learns to say what it reads.

Source: the class of data that was made for a library that shifts labels, as Hugging Face's models do; `GPTModel` of megatron-core does not.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2"
FOUND = ("labels_are_not_the_tokens", 1, (0, 1), "")


def put_in() -> None:
    """The loop hands its tokens on as labels."""
    from tests.megatron import job

    original = job.batches

    def batches(layout: Any, made: int = 0) -> Any:
        for batch in original(layout, made):
            yield batch | {"labels": batch["input_ids"].clone()}

    job.batches = batches
