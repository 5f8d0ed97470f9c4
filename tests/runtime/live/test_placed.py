"""The ranks that hold a copy of a distributed tensor are those along its replicated placements."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore

from tspec.runtime.live.features import features
from tspec.runtime.live.placed import cuts, placed, placements


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


def test_a_part_of_a_mesh_is_known_as_long_as_its_process_group() -> None:
    dist.init_process_group("fake", rank=3, world_size=4, store=FakeStore())
    try:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        copy = DTensor.from_local(torch.ones(2), mesh["shard"], [Replicate()], run_check=False)
        assert placed(copy) == (2, 3)
    finally:
        dist.destroy_process_group()
    assert placed(copy) is None


def test_placements_are_written_as_words() -> None:
    assert placements(torch.zeros(2)) is None
    assert placements(tensor(Shard(1), Replicate())) == ["Shard(1)", "Replicate"]
    assert placements(tensor(Partial(), Partial("max"))) == ["Partial(sum)", "Partial(max)"]


def test_cuts_name_the_axis_of_ranks() -> None:
    """What is the same on all ranks, or a summand, is not cut; nor is what lies on one rank."""
    mesh = SimpleNamespace(shape=(2, 3), mesh_dim_names=("dp", "tp"))

    def cut(*placements: Any) -> Any:
        return cuts(SimpleNamespace(device_mesh=mesh, placements=placements))

    assert cuts(torch.zeros(2)) is None
    assert cut(Replicate(), Partial()) is None
    assert cut(Replicate(), Shard(1)) == ("Shard(1) over tp",)
    assert cut(Shard(0), Shard(0)) == ("Shard(0) over dp", "Shard(0) over tp")
    mesh.mesh_dim_names = None
    assert cut(Shard(0), Replicate()) == ("Shard(0) over 2 ranks",)
    mesh.shape = (1, 3)
    assert cut(Shard(0), Shard(1)) == ("Shard(1) over 3 ranks",)


def test_what_is_read_is_the_part_on_this_rank(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))
        part = torch.full((2, 3), 2.0)
        shape = torch.Size((4, 3))
        cut = DTensor.from_local(part, mesh, [Shard(0)], shape=shape, stride=(3, 1))
        summand = DTensor.from_local(part, mesh, [Partial()])
        names = ("shape", "numel", "norm", "zeros", "digest")
        [row, partial, plain] = features([cut, summand, part], names)
    finally:
        dist.destroy_process_group()
    assert cut.shape == (4, 3)
    assert row == plain and row["shape"] == (2, 3) and row["numel"] == 6
    assert partial == plain
