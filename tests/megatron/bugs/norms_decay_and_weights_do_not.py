"""Biases and norms decay, and weights do not: the condition of `no_weight_decay_cond` is the wrong way round.

Source: the class of an argument that says which parameters do not decay, given as which do.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2"
FOUND = None


def put_in() -> None:
    """Groups are exchanged after the optimizer was built."""
    from megatron.core import optimizer as module

    original = module._get_param_groups

    def groups(*given: Any, **options: Any) -> Any:
        found = original(*given, **options)
        for group in found:
            group["wd_mult"] = 1.0 - group["wd_mult"]
        return found

    module._get_param_groups = groups
