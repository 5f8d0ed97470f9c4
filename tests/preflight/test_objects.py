"""Ranks of a dry run get the objects that other ranks send: whoever is waited for runs too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.families import family
from tests.preflight.test_preflight import HERE, preflight
from tspec.preflight.launch import DryRunFailed, dry_runs

STAGES = HERE.parent / "equivalence/pipelined.tspec"
JOB = str(HERE.parent / "equivalence/pipelined.py")

SENT = """

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), [0]
WAYS
if size[0] == 0:
    raise SystemExit("nothing was sent")
model = torch.nn.Linear(size[0], 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.ones(2, size[0])).sum().backward()
    optimizer.step()
"""
"""A script whose model has the size that rank 0 reads."""

WAYS = {
    "broadcast": "size = [5 if rank == 0 else 0]; dist.broadcast_object_list(size, src=0)",
    "scatter": "dist.scatter_object_list(size, [1, 1, 5] if rank == 0 else None, src=0)",
    "sent on": (
        "size = [3] if rank == 0 else size\n"
        "if rank > 0: dist.recv_object_list(size, src=rank - 1)\n"
        "size = [size[0] + 1] if rank > 0 else size\n"
        "if rank < 2: dist.send_object_list(size, dst=rank + 1)"
    ),
    "in a group": (
        "pair = dist.new_group([1, 2])\n"
        "if rank == 1: dist.broadcast_object_list([5], group=pair, group_src=0)\n"
        "if rank == 2: dist.broadcast_object_list(size, group=pair, group_src=0)\n"
    ),
    "and back": (
        "if rank == 2: dist.send_object_list([4], dst=1); dist.recv_object_list(size, src=1)\n"
        "if rank == 1: dist.recv_object_list(size, src=2); size[0] += 1; dist.send_object_list(size, dst=2)\n"
    ),
}


@pytest.mark.gloo
@pytest.mark.parametrize("way", family(WAYS, {"in a group"}))
def test_an_object_of_another_rank_comes(way: str, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(SENT.replace("WAYS", WAYS[way]))
    (facts,) = dry_runs([str(script)], (2,), 3)
    assert (facts.rank, facts.waits, facts.updated) == (2, "", True)
    assert [each.shape for each in facts.parameters] == [(1, 5), (1,)]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_an_object_that_no_rank_sends_ends_the_script(tmp_path: Path) -> None:
    """Both wait for one another; what was seen before is still told."""
    script = tmp_path / "job.py"
    waits = "dist.recv_object_list([None], src=1 - rank)\n    optimizer.step()"
    script.write_text(SENT.replace("WAYS", "size = [5]").replace("optimizer.step()", waits))
    (facts,) = dry_runs([str(script)], (0,), 2)
    assert (facts.waits, facts.updated) == ("rank 1", False)
    assert [each.shape for each in facts.parameters] == [(1, 5), (1,)]


@pytest.mark.slow
@pytest.mark.gloo
def test_a_failure_of_the_rank_that_is_waited_for_is_told(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    fails = "assert rank, 'no data here'\ndist.broadcast_object_list(size, src=0)"
    script.write_text(SENT.replace("WAYS", fails))
    with pytest.raises(DryRunFailed, match="rank 0 of 2 ended with status 1") as failed:
        dry_runs([str(script)], (1,), 2)
    assert "no data here" in failed.value.said


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "layout", "modules", "tensors"),
    [
        pytest.param("1F1B", "stages", 23, "fake", marks=pytest.mark.exhaustive),
        ("Interleaved1F1B", "interleaved", 24, "real"),
    ],
)
def test_stages_of_torch_are_as_the_layout_says(
    schedule: str, layout: str, modules: int, tensors: str
) -> None:
    """Stages tell each other which tensors they send, forward and back, before their first step."""
    status, said = preflight(
        layout, "--tensors", tensors, "--", JOB, "--schedule", schedule, file=STAGES
    )
    last = f"28 parameters and activations of {modules} modules are as the layout says"
    assert (status, said.splitlines()[-1]) == (0, last), said
    assert "rank 0 of 2\n" in said and "rank 1 of 2\n" in said


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_input_of_a_later_stage_is_compared(tmp_path: Path) -> None:
    """Only rank 1 has the head, whose input comes from rank 0."""
    text = STAGES.read_text()
    file = tmp_path / "other.tspec"
    file.write_text(text.replace('input "head": [batch, hidden]', 'input "head": [batch, classes]'))
    status, said = preflight("stages", "--", JOB, file=file)
    wrong = "rank 1: input head: it has shape [4, 16], and [4, 4] in the layout"
    assert (status, said.splitlines()[-1]) == (1, wrong), said
