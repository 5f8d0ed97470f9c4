"""The configuration has no `finalize_model_grads_func`: gradients are never reduced, and each rank updates its shard of the distributed optimizer from its own data.

Source: the class of a loop that leaves `finalize_model_grads_func` of megatron-core unset, which is allowed.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,zero"
FOUND = ("shards_are_updated_from_reduced_gradients", 1, (0, 1), "")


def put_in() -> None:
    """The loop leaves it unset."""
    from tests.megatron import job

    original = job.optimizer_of

    def optimizer_of(config: Any, *given: Any) -> Any:
        found = original(config, *given)
        config.finalize_model_grads_func = None
        return found

    job.optimizer_of = optimizer_of
