"""Collectives, and the groups that they and device meshes name."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
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


LATE = WatchSpec(
    (
        EventSpec(
            "replicating",
            (
                "torch.distributed.all_reduce",
                "torch.distributed._functional_collectives.all_reduce",
            ),
            (
                GROUP,
                FieldSpec("output", ("tensor",), None, True),
                FieldSpec(
                    "used_early", ("bool",), ("call", "used_early", (("name", "result"),), ()), True
                ),
            ),
        ),
    )
)


def test_a_call_ends_when_its_work_is_waited_for(group: None) -> None:
    seen, sent, other = Seen(), torch.ones(3), torch.ones(3)
    with LiveJob(LATE, [seen]):
        first = dist.all_reduce(sent, async_op=True)
        second = dist.all_reduce(other, async_op=True)
        assert seen.ended == []
        second.wait()
        assert [fields["output"] for _, fields in seen.ended] == [other]
        first.wait()
        first.wait()
        assert len(seen.ended) == 2 and seen.ended[1][1]["output"] is sent
    assert [fields["used_early"] for _, fields in seen.ended] == [False, False]


def test_a_functional_collective_ends_when_its_result_is_used(group: None) -> None:
    seen = Seen()
    with LiveJob(LATE, [seen]):
        reduced = functional.all_reduce(torch.ones(3), "sum", dist.group.WORLD)
        named = functional.all_reduce(torch.ones(3), "sum", dist.group.WORLD.group_name)
        assert seen.ended == []
        assert reduced.sum().item() == 3.0
        assert len(seen.ended) == 1
        assert named.view(3, 1).shape == (3, 1) and len(seen.ended) == 1
        assert named.view(3, 1).sum().item() == 3.0
    assert [fields["group"] for _, fields in seen.ended] == [(0,), (0,)]
    assert [type(fields["output"]) for _, fields in seen.ended] == [torch.Tensor] * 2


def test_what_is_written_or_read_before_the_wait(group: None) -> None:
    seen, layer = Seen(), torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    halves = torch.ones(2, 3)
    with LiveJob(LATE, [seen]):
        work = dist.all_reduce(written := torch.ones(3), async_op=True)
        written.mul_(2)
        work.wait()
        work = dist.all_reduce(read := torch.ones(3), async_op=True)
        layer(read).sum().backward()
        work.wait()
        work = dist.all_reduce(layer.weight.grad, async_op=True)
        optimizer.step()
        work.wait()
        work = dist.all_reduce(halves[0], async_op=True)
        halves[1].mul_(2)  # its sibling is no part of it
        work.wait()
    assert [fields["used_early"] for _, fields in seen.ended] == [True, True, True, False]


def test_an_output_that_nobody_waited_for_is_not_known(group: None) -> None:
    seen = Seen()
    with LiveJob(LATE, [seen]):
        polled = dist.all_reduce(torch.ones(3), async_op=True)
        polled.is_completed()
        assert len(seen.ended) == 1
        dist.all_reduce(torch.ones(3), async_op=True)
    assert [fields["output"] for _, fields in seen.ended] == [Missing.NOT_RECORDED] * 2


def test_what_is_coalesced_ends_where_it_is_waited_for(group: None) -> None:
    seen, tensors = Seen(), (torch.ones(3), torch.ones(2))
    with LiveJob(LATE, [seen]):
        with dist.distributed_c10d._coalescing_manager(async_ops=True) as later:
            for each in tensors:
                dist.all_reduce(each, async_op=True)
        assert seen.ended == []
        later.wait()
        assert len(seen.ended) == 2
    assert {id(fields["output"]) for _, fields in seen.ended} == set(map(id, tensors))
    assert not any(fields["used_early"] for _, fields in seen.ended)


def test_what_is_coalesced_is_not_read_before_it_is_waited_for(group: None) -> None:
    seen, layer = Seen(), torch.nn.Linear(3, 3)
    sent = torch.ones(3)
    with LiveJob(LATE, [seen]):
        with dist.distributed_c10d._coalescing_manager(async_ops=True) as later:
            dist.all_reduce(sent, async_op=True)
        layer(sent)
        later.wait()
    [(_, fields)] = seen.ended
    assert fields["used_early"]


def test_what_is_coalesced_without_works_ends_with_its_block(group: None) -> None:
    seen, tensors, other = Seen(), (torch.ones(3), torch.ones(2)), torch.ones(4)
    alone = dist.new_group([0])
    with LiveJob(LATE, [seen]):
        with dist.distributed_c10d._coalescing_manager():
            dist.all_reduce(tensors[0])
            with dist.distributed_c10d._coalescing_manager(alone):
                dist.all_reduce(other, group=alone)
            assert [fields["output"] for _, fields in seen.ended] == [other]
            dist.all_reduce(tensors[1])
            assert len(seen.ended) == 1
        assert [fields["output"] for _, fields in seen.ended[1:]] == list(tensors)
    assert len(seen.ended) == 3 and not any(fields["used_early"] for _, fields in seen.ended)


def test_what_is_coalesced_has_no_output_where_its_block_raises(group: None) -> None:
    seen = Seen()
    with LiveJob(LATE, [seen]):
        with pytest.raises(KeyError), dist.distributed_c10d._coalescing_manager():
            dist.all_reduce(torch.ones(3))
            raise KeyError
        assert len(seen.ended) == 1
    dist.distributed_c10d._world.pg_coalesce_state.clear()
    assert [fields["output"] for _, fields in seen.ended] == [Missing.NOT_RECORDED]


def test_an_output_may_be_waited_for_in_the_next_step(group: None) -> None:
    """Not in a later one: then it is unknown from the opening of that step on."""
    seen, layer = Seen(), torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    ended: list[list[object]] = []
    works: dist.Work | None = None
    with LiveJob(LATE, [seen]):
        never = dist.all_reduce(torch.ones(3), async_op=True)
        for _ in range(4):
            optimizer.zero_grad()
            layer(torch.ones(3)).sum().backward()
            if works is not None:
                works.wait()
            optimizer.step()
            sent = torch.ones(3)
            works = dist.all_reduce(sent, async_op=True)
            ended.append([fields["output"] for _, fields in seen.ended])
        assert works is not None
        works.wait()
        never.wait()
    assert [len(each) for each in ended] == [0, 2, 3, 4] and len(seen.ended) == 5
    assert [each is Missing.NOT_RECORDED for each in ended[-1]] == [True, False, False, False]


def test_a_collective_that_raises_is_named(group: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def time_out(*args: object) -> None:
        raise RuntimeError("timed out")

    said: list[str] = []
    monkeypatch.setattr(dist.ProcessGroup, "allreduce", time_out)
    with LiveJob(SPEC, [Seen()], warn=said.append), pytest.raises(RuntimeError, match="timed out"):
        dist.all_reduce(torch.ones(3))
    [message] = said
    assert message.startswith(
        "rank 0: torch.distributed.all_reduce raised RuntimeError in step 0 at "
    )
    assert "Its group has the ranks 0." in message and "test_collectives.py:" in message
