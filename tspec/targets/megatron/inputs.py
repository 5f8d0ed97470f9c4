"""Follows the input of a pipeline stage. A stage reads the tensor that `set_input_tensor` left in
its block, not an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from tspec.runtime.live.watched import Listener, Role

if TYPE_CHECKING:
    from tspec.runtime.live.followed import FollowedJob

BLOCKS = (
    "megatron.core.transformer.transformer_block.TransformerBlock.forward",
    "megatron.core.ssm.mamba_block.MambaStack.forward",
)
"""Blocks that read this tensor instead of their argument, unless they are on the first stage."""


class InputListener(Listener):
    """Follows the blocks of layers."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The layers of a stage are about to be called."""
        block = args[0]
        held = getattr(block, "input_tensor", None)
        if isinstance(held, torch.Tensor) and not getattr(block, "pre_process", True):
            self._job.taken_up([held])


def install(job: FollowedJob) -> None:
    """Follow the blocks of all stages."""
    for path in BLOCKS:
        job.functions.watch_path(Role("input of a stage", InputListener(job), path=path))
