"""The ranks that hold a copy of a distributed tensor are those along its replicated placements."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.distributed.tensor import Partial, Replicate, Shard

from tspec.runtime.live.placed import placed


def tensor(*placements: Any, at: tuple[int, int] | None = (1, 0)) -> Any:
    """As much of a `DTensor` on a mesh of 2 by 3 ranks as is asked."""
    mesh = SimpleNamespace(mesh=torch.arange(6).reshape(2, 3), get_coordinate=lambda: at)
    return SimpleNamespace(device_mesh=mesh, placements=placements)


@pytest.mark.parametrize(
    ("placements", "ranks"),
    [
        ((Replicate(), Shard(0)), (0, 3)),
        ((Shard(0), Replicate()), (3, 4, 5)),
        ((Replicate(), Replicate()), (0, 1, 2, 3, 4, 5)),
        ((Shard(0), Shard(1)), (3,)),
        ((Partial(), Replicate()), (3, 4, 5)),
    ],
)
def test_copies_lie_along_what_is_replicated(
    placements: tuple[Any, ...], ranks: tuple[int, ...]
) -> None:
    assert placed(tensor(*placements)) == ranks


def test_other_tensors_say_nothing() -> None:
    assert placed(torch.zeros(2)) is None
    assert placed(tensor(Replicate(), Replicate(), at=None)) is None
