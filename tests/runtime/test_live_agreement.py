"""One job, recorded and checked at once: the hooks decide in it what the reference decides over the recording."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.data import DataLoader, TensorDataset

from tests.runtime.test_ranks import join, ranks
from tests.runtime.training import HEAD, Trained, loop
from tspec.check.interpret import interpret
from tspec.record.destination import Destination
from tspec.record.start import recorder_of
from tspec.record.watch import watch_spec
from tspec.resolve import load_text
from tspec.resolve.program.rules import Program
from tspec.runtime.checker import Checker
from tspec.runtime.live import LiveJob
from tspec.runtime.results import InstanceResult
from tspec.targets.compile import compile_program
from tspec.targets.load import module_of
from tspec.trace.read import read_trace
from tspec.trace.show import summary
from tspec.trace.size import size_of_recording

RULES = """
invariant grads { for p in parameters before optimizer.step when present(p.grad) expect norm(p.grad) > 0.05 }
invariant moves { for p in parameters during optimizer.step when present(p.grad) and norm(p.grad) > 0 expect changed(p.data) }
invariant clears { each step when step > 1 expect contains optimizer.zero_grad }
invariant order { each step expect optimizer.zero_grad before backward before optimizer.step }
invariant only { for p in parameters each step expect changed(p.data) only during optimizer.step }
invariant falls { each step when step > 1 expect loss < previous(loss) }
invariant steady { each step expect loss <= 2 * min(loss, over: 3 steps) }
invariant named { for p in parameters each step expect p.names == first(p.names) }
invariant shape { for c in calls(forward) when c.module.root expect c.output.shape[0] == 4 and finite(c.output) }
invariant held { for o in optimizers for p in o.parameters before optimizer.step expect p in modules.parameters }
invariant rates { for o in optimizers before optimizer.step once expect max(o.param_groups.lr) < 1 }
invariant alone { for p in parameters across world after optimizer.step expect same(p.data) }
invariant began { each step when run.step > 1 and run.step <= 3 expect loss < previous(loss) }
invariant left { for p in parameters after optimizer.step when step < 3 expect norm(p.data) == first(norm(p.data)) }
invariant looked { for c in calls(forward) when 4 > step expect step == previous(step) }
invariant whole { each run expect count(calls(optimizer.step)) == 5 }
"""


def program(text: str) -> Program:
    loaded = load_text(HEAD + text)
    assert loaded.program is not None, [d.message for d in loaded.diagnostics]
    return loaded.program


Key = tuple[str, tuple[int, ...], tuple[int, int], tuple[str, ...]]
Found = tuple[str, str, int, dict[str, str]]
"""Verdict, reason, step, and the values of what is violated."""


def recorded_and_checked(
    folder: Path, text: str, train: Callable[[], object]
) -> tuple[dict[Key, Found], dict[Key, Found], Sequence[str]]:
    """What the reference and a job's checker decide of what `train` does, and the checker's faults.

    They also count alike.
    """
    checker, decided = watched(folder, text, train)
    expected = of_recording(folder, text)
    counts = {rule.declared.name: rule.counts for rule in checker.rules}
    assert {name: +Counter(each) for name, each in counts.items()} == counted(expected)
    reasons = {rule.declared.name: rule.reasons for rule in checker.rules if rule.reasons}
    assert reasons == explained(expected)
    return expected, decided, checker.faults


def watched(
    folder: Path, text: str, train: Callable[[], object]
) -> tuple[Checker, dict[Key, Found]]:
    """Record and check what `train` does in this process: the checker, and what it decided."""
    rules = program(text)
    spec = watch_spec(rules.vocabulary)
    recorder = recorder_of(Destination(folder / "trace"), spec, "test")
    seen: list[InstanceResult] = []
    checker = module_of(compile_program(rules)).hooks(observer=seen.append)
    torch.manual_seed(0)
    with LiveJob(spec, [recorder, checker]):
        train()
    recorder.close()
    checker.close()
    names = [rule.declared.name for rule in checker.rules]
    keys = [(names[one.rule], one.ranks, one.at, one.subjects) for one in seen]
    assert len({*keys}) == len(keys)
    return checker, {
        key: (o.verdict, o.reason, o.step, dict(o.values))
        for key, o in zip(keys, seen, strict=True)
    }


def of_recording(folder: Path, text: str) -> dict[Key, Found]:
    """What the reference decides over the recording."""
    found = interpret(program(text).rules, read_trace(folder / "trace")).decided
    return {
        (d.instance.rule, d.instance.ranks, d.instance.at, d.instance.subjects): (
            d.verdict,
            d.reason,
            d.step,
            dict(d.values),
        )
        for d in found
    }


def counted(found: dict[Key, Found]) -> dict[str, Counter[str]]:
    """Rule -> how often it came to each verdict."""
    return {
        rule: Counter(verdict for key, (verdict, *_) in found.items() if key[0] == rule)
        for rule in {key[0] for key in found}
    }


def explained(found: dict[Key, Found]) -> dict[str, Counter[str]]:
    """Rule -> how often each reason makes an instance idle or unknown."""
    why = [(key[0], reason) for key, (said, reason, *_) in found.items() if said != "violated"]
    return {
        rule: Counter(reason for other, reason in why if other == rule and reason)
        for rule, reason in why
        if reason
    }


def differences(
    expected: dict[Key, Found], decided: dict[Key, Found]
) -> dict[Key, tuple[Found | None, Found | None]]:
    """Instances on which two executors differ, with the verdicts of both."""
    return {
        key: (expected.get(key), decided.get(key))
        for key in {*expected, *decided}
        if expected.get(key) != decided.get(key)
    }


def test_hooks_in_a_job_decide_as_the_reference_over_its_recording(tmp_path: Path) -> None:
    expected, decided, faults = recorded_and_checked(
        tmp_path, RULES, lambda: loop(Trained(), 5, None)
    )
    assert faults == []
    assert differences(expected, decided) == {}
    assert {"holds", "violated", "idle"} <= {verdict for verdict, *_ in decided.values()}
    assert len({key[0] for key in decided}) == len(RULES.strip().splitlines())


def one_batch_more() -> None:
    """A loop that takes one batch more than it trains on, and evaluates after it."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number, (x,) in enumerate(DataLoader(TensorDataset(torch.ones(8, 3)), 2)):
        if number == 3:
            break
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    with torch.no_grad():
        model.eval()(torch.ones(4, 3))


def test_a_batch_that_is_not_trained_on_is_no_step(tmp_path: Path) -> None:
    text = """
    invariant updates { each step expect contains optimizer.step }
    invariant passes { each microbatch expect contains backward }
    invariant alone { for p in parameters across world each step expect same(p.data) }
    invariant evaluated { for c in calls(forward) when phase == eval expect step == 4 }
    """
    expected, decided, faults = recorded_and_checked(tmp_path, text, one_batch_more)
    assert faults == []
    assert differences(expected, decided) == {}
    found = Counter((key[0], each[0]) for key, each in decided.items())
    assert found["t.updates", "holds"] == found["t.passes", "holds"] == 3
    assert found["t.evaluated", "holds"] >= 1
    assert not [name for name, verdict in found if verdict == "violated"]
    assert size_of_recording(tmp_path / "trace").steps == 3
    [stream] = summary(tmp_path / "trace").streams
    assert stream.steps == (0, 3)


ACROSS = """
invariant alike { for p in parameters across world after optimizer.step expect same(p.data) }
invariant start { for p in parameters across world before optimizer.step once expect same(p.data) }
invariant later { for p in parameters across world during optimizer.step when step > 2 expect same(p.data) }
invariant grads { for p in parameters across world before optimizer.step when present(p.grad) expect spread(norm(p.grad)) < 0.01 }
invariant evaluated { for p in parameters across world after forward when phase == eval expect same(p.data) }
invariant losses { for c in calls(backward) across world expect same(c.loss) }
invariant held { for o in optimizers for p in o.parameters across world before optimizer.step expect present(p.grad) }
invariant lone { for p in parameters across dp each step expect same(p.data) }
invariant falls { each step when step > 1 expect loss < previous(loss) }
invariant small { across world each step when loss < 0.5 expect same(step) }
"""


def apart(rank: int, meeting: str, folder: Path) -> None:
    """Two ranks whose parameters part in step 2. In step 3 only the first evaluates."""
    join(rank, meeting)

    def train() -> None:
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(1, 6):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            if step == 2 and rank == 1:
                model.weight.grad.mul_(3)  # type: ignore[union-attr]
            optimizer.step()
            if step == 3 and rank == 0:
                model.eval()
                with torch.no_grad():
                    model(torch.ones(4, 3))
                model.train()

    watched_rank(rank, folder, ACROSS, train)


def watched_rank(rank: int, folder: Path, text: str, train: Callable[[], object]) -> None:
    """Record and check what `train` does on this rank, and write what was decided."""
    checker, decided = watched(folder, text, train)
    told = {
        "faults": checker.faults,
        "counts": {rule.declared.name: rule.counts for rule in checker.rules},
        "reasons": {rule.declared.name: rule.reasons for rule in checker.rules},
        "decided": [(*key, found) for key, found in decided.items()],
    }
    (folder / f"decided-{rank}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


@pytest.mark.gloo
def test_two_ranks_decide_as_the_reference_over_their_recording(tmp_path: Path) -> None:
    assert ranks(apart, tmp_path, wait=200.0) == [0, 0]
    decided = as_the_reference(tmp_path, ACROSS, 2)
    assert {"holds", "violated", "idle"} <= {verdict for verdict, *_ in decided.values()}


def as_the_reference(folder: Path, text: str, world: int) -> dict[Key, Found]:
    """What the ranks decided, which is what the reference decides over their recording."""
    told = [json.loads((folder / f"decided-{rank}.json").read_text()) for rank in range(world)]
    assert [one["faults"] for one in told] == [[]] * world
    decided = {
        (rule, tuple(members), tuple(at), tuple(subjects)): tuple(found)
        for one in told
        for rule, members, at, subjects, found in one["decided"]
    }
    assert len(decided) == sum(len(one["decided"]) for one in told)
    expected = of_recording(folder, text)
    assert differences(expected, decided) == {}
    counts = {
        rule: +sum((Counter(one["counts"][rule]) for one in told), Counter[str]())
        for rule in told[0]["counts"]
    }
    assert counts == counted(expected)
    reasons = {
        rule: sum((Counter(one["reasons"][rule]) for one in told), Counter[str]())
        for rule in told[0]["reasons"]
    }
    assert {rule: why for rule, why in reasons.items() if why} == explained(expected)
    return decided


GRID = """
invariant grid { across tp, dp after optimizer.step expect same(step) }
invariant corner { for p in parameters across tp, dp after optimizer.step expect same(p.data) }
invariant row { across tp after optimizer.step expect same(step) }
"""


def on_a_grid(rank: int, meeting: str, folder: Path) -> None:
    """Four ranks, two by two. The last one's parameters part from the others' in step 2."""
    join(rank, meeting, world=4)

    def train() -> None:
        init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(1, 4):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            if step == 2 and rank == 3:
                model.weight.grad.mul_(3)  # type: ignore[union-attr]
            optimizer.step()

    watched_rank(rank, folder, GRID, train)


@pytest.mark.slow
@pytest.mark.gloo
def test_a_group_over_two_axes_is_all_ranks_reached_over_either(tmp_path: Path) -> None:
    """A rank of a job knows its own axes alone, and decides as one that knows all."""
    assert ranks(on_a_grid, tmp_path, wait=200.0, world=4) == [0] * 4
    decided = as_the_reference(tmp_path, GRID, 4)
    found = {
        (rule.split(".")[-1], members, verdict)
        for (rule, members, *_), (verdict, *_) in decided.items()
    }
    everyone = (0, 1, 2, 3)
    assert found == {
        ("grid", everyone, "holds"),
        ("corner", everyone, "holds"),
        ("corner", everyone, "violated"),
        ("row", (0, 1), "holds"),
        ("row", (2, 3), "holds"),
    }
