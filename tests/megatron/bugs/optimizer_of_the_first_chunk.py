"""The optimizer is built for the first model chunk of each stage: the other chunks are never updated, and the gradient norm leaves them out.

Source: the class of `model[0]` in place of `model`, where a stage has several chunks, in a call of `get_megatron_optimizer`.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2,virtual=2,untied"
FOUND = ("gradient_norm_is_that_of_all_shards", 1, (0, 1), "")


def put_in() -> None:
    """It is given this chunk."""
    from megatron.core import optimizer

    original = optimizer.get_megatron_optimizer

    def of_the_first(config: Any, chunks: Any, *args: Any, **kwargs: Any) -> Any:
        return original(config, chunks[:1], *args, **kwargs)

    optimizer.get_megatron_optimizer = of_the_first
