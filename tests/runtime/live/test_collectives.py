"""Collectives, and the groups that they and device meshes name."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from tspec.runtime.edges import Missing, StateSource, WatchedCall
from tspec.runtime.live import EventSpec, FieldSpec, GroupSpec, LiveJob, WatchSpec

GROUP, SENT = FieldSpec("group", ("group",)), FieldSpec("tensor", ("tensor",))
SPEC = WatchSpec(
    (
        EventSpec(
            "collective",
            ("torch.distributed.all_reduce", "torch.distributed.all_gather"),
            (FieldSpec("callable", ("string",)), GROUP, SENT),
        ),
        EventSpec(
            "replicating",
            ("torch.distributed.all_reduce", "torch.distributed.all_gather"),
            (GROUP, FieldSpec("output", ("tensor",), None, True)),
        ),
    ),
    groups=(
        GroupSpec("world", ("torch.distributed.distributed_c10d._get_default_group",)),
        GroupSpec("dp"),
        GroupSpec("tp"),
        GroupSpec("broken", ("torch.distributed.no_such_function",)),
    ),
)


class Seen:
    def __init__(self) -> None:
        self.ended: list[tuple[str, dict[str, object]]] = []

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        pass

    def end(self, call: WatchedCall, source: StateSource) -> None:
        self.ended.append((call.event, dict(call.fields)))

    def boundary(self, span: str, index: int, source: StateSource) -> None:
        pass

    def finish(self, source: StateSource) -> None:
        pass


@pytest.fixture
def group(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_one_call_is_a_call_of_each_event_that_names_it(group: None) -> None:
    seen, sent = Seen(), torch.ones(3)
    with LiveJob(SPEC, [seen]):
        dist.all_reduce(sent)
        gathered = [torch.empty(3)]
        dist.all_gather(gathered, sent)
    assert [event for event, _ in seen.ended] == ["replicating", "collective"] * 2
    reduce, gather = seen.ended[1][1], seen.ended[3][1]
    assert reduce["callable"] == "torch.distributed.all_reduce" and reduce["group"] == (0,)
    assert reduce["tensor"] is sent is gather["tensor"]
    assert seen.ended[0][1]["output"] is sent and seen.ended[2][1]["output"] is gathered[0]


def test_axes_of_meshes_and_functions(group: None) -> None:
    job = LiveJob(SPEC, [Seen()])
    with job:
        assert job.ranks("world") == (0,) and job.ranks("tp") is None
        mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
        assert job.ranks("dp") == job.ranks("tp") == (0,)
        assert mesh["dp"].size() == 1 and len(job.ranks_known.meshes) == 1
        assert job.ranks("broken") is None and job.ranks("pp") is None


def test_a_rank_is_known_after_its_group_is_gone(tmp_path: Path) -> None:
    job = LiveJob(SPEC, [Seen()])
    with job:
        assert (job.rank, job.world, job.ambient("rank")) == (0, 1, 0)
        dist.init_process_group(
            "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
        )
        assert job.world == 1
        dist.destroy_process_group()
        assert (job.rank, job.world) == (0, 1)
        assert job.ambient("loss") is Missing.NO_HISTORY


def not_set_up() -> None:
    raise AssertionError("data parallel group is not initialized")


def fails() -> None:
    raise ValueError("no such axis")


def test_a_group_that_fails_is_said_once(group: None, capsys: pytest.CaptureFixture[str]) -> None:
    groups = (
        GroupSpec("broken", (f"{__name__}.fails",)),
        GroupSpec("unset", (f"{__name__}.not_set_up",)),
    )
    job = LiveJob(WatchSpec((), groups=groups), [Seen()])
    with job:
        assert [job.ranks(axis) for axis in ("broken", "unset") * 2] == [None] * 4
    said = f"tspec: group broken is not known: {__name__}.fails raised ValueError: no such axis\n"
    assert capsys.readouterr().err == said
