"""Steps that are left out (`--check-steps`): what is decided in the others is what is decided without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.runtime.test_ranks import join, ranks
from tests.runtime.training import module, train
from tspec.reasons import CUT_OFF
from tspec.resolve import load
from tspec.runtime.results import InstanceResult
from tspec.runtime.values import NO_HISTORY
from tspec.schedule import FIRST, schedule_of
from tspec.targets.compile import compile_program
from tspec.targets.load import module_of

SCHEDULE = "4/20"
STEPS = 150
CHECKED = [step for step in range(1, STEPS + 1) if schedule_of(SCHEDULE).checks(step, 1)]

RULES = (
    "each step expect count(calls(optimizer.step)) == 1",
    "for p in parameters each step expect changed(p.data)",
    "for p in parameters each step expect changed(p.data) only during optimizer.step",
    "for p in parameters each step every 2 steps when present(p.grad) expect norm(p.grad) < 1.5",
    "for c in calls(optimizer.step) expect count(calls(backward)) == 1",
    "before optimizer.step expect contains backward",
    "after backward expect loss < 2.2",
    "each microbatch expect contains backward",
    "during optimizer.step expect not divisible(step, by: 3)",
    "each step expect count(batches) == 1",
    "each step expect loss <= previous(loss) * 1.2",
    "each step expect max(loss, over: 3 steps) < 2.3",
    "for p in parameters each step expect norm(p.data) >= norm(first(p.data)) * 0.9",
    "each epoch expect contains optimizer.step",
    "each run expect contains optimizer.step",
    "each run expect count(optimizers) == 1 and step == 150",
)


def job(steps: int = STEPS) -> None:
    """A loop with a loader, an evaluation after each epoch, and losses that go up and down."""
    torch.manual_seed(0)
    data = torch.randn(60, 4)
    loader = DataLoader(TensorDataset(data, (data[:, 0] > 0).long()), batch_size=4, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    done = 0
    while done < steps:
        model.train()
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(3 * model(inputs), labels).backward()
            optimizer.step()
            done += 1
            if done == steps:
                break
        model.eval()
        with torch.no_grad():
            model(data)


def decisions(hooks: Any, **options: Any) -> tuple[dict[Any, InstanceResult], Any]:
    """All decisions of a run, and its checker."""
    found: dict[Any, InstanceResult] = {}

    def observe(result: InstanceResult) -> None:
        key = (result.rule, result.ranks, result.at, result.subjects)
        assert key not in found
        found[key] = result

    with hooks.install(observer=observe, **options) as checker:
        job()
        assert checker.faults == []
    return found, checker


def agrees(some: InstanceResult, full: InstanceResult) -> bool:
    """Equal, or unknown since an earlier step was left out, or decided before a window was cut off."""
    if some.verdict == "unknown" and some.reason in (CUT_OFF, NO_HISTORY.value):
        return True
    return some == (replace(full, step=some.step) if some.verdict in ("holds", "idle") else full)


def test_what_is_decided_in_checked_steps_is_what_is_decided_without_a_schedule() -> None:
    hooks = module(*RULES)
    full, _ = decisions(hooks)
    some, checker = decisions(hooks, check_steps=SCHEDULE)
    spans = {rule.number: rule.span for rule in checker.program.rules}
    assert some.keys() <= full.keys()
    differing = [(key, some[key], full[key]) for key in some if not agrees(some[key], full[key])]
    assert differing == []
    for number, rule in enumerate(RULES):
        of_full = {result.step for result in full.values() if result.rule == number}
        decided = {
            result.step
            for result in some.values()
            if result.rule == number and result.verdict != "unknown"
        }
        if spans[number] in ("epoch", "run") or "first(" in rule:
            continue
        late = {step for step in decided if step > FIRST + 4}
        if "over:" in rule:  # the third checked step is the first with three values
            assert late == {122, 123, 142, 143}
        elif "previous(" in rule:
            assert late == {121, 122, 123, 141, 142, 143}
        else:
            assert decided == of_full & set(CHECKED)
            assert late, rule


def test_a_window_with_steps_that_are_left_out_is_cut_off() -> None:
    hooks = module(*RULES)
    some, checker = decisions(hooks, check_steps=SCHEDULE)
    of = {number: [r for r in some.values() if r.rule == number] for number in range(len(RULES))}
    epochs, run, ends = (RULES.index(rule) for rule in RULES[-3:])
    # The epoch that is open at step 101, and those that opened in checked steps later.
    assert [r.verdict for r in of[epochs]] == ["holds"] * len(of[epochs])
    assert [r.verdict for r in of[run]] == ["holds"]  # decided at step 101 already
    assert [(r.verdict, r.step) for r in of[ends]] == [("holds", STEPS)]
    assert checker.tracker.last.step == STEPS


def test_the_run_is_cut_off_if_what_it_holds_was_left_out() -> None:
    rule = "each run expect count(calls(optimizer.step)) == 150"
    hooks = module(rule)
    full, _ = decisions(hooks)
    some, _ = decisions(hooks, check_steps=SCHEDULE)
    assert [r.verdict for r in full.values()] == ["holds"]
    assert [(r.verdict, r.reason) for r in some.values()] == [("unknown", CUT_OFF)]


@pytest.mark.slow
def test_the_essentials_decide_alike() -> None:
    program = load([Path("specs/essentials")]).program
    assert program is not None
    hooks = module_of(compile_program(program))
    full, _ = decisions(hooks)
    some, checker = decisions(hooks, check_steps=SCHEDULE)
    assert some.keys() <= full.keys()
    once = {rule.number for rule in checker.program.rules if rule.once}
    differing = [
        (checker.program.rules[key[0]].name, some[key], full[key])
        for key in some
        if key[0] not in once and not agrees(some[key], full[key])
    ]
    assert differing == []
    assert {r.step for r in some.values() if r.verdict == "holds"} >= set(CHECKED)


def test_a_fault_that_begins_between_is_found_in_the_next_checked_step() -> None:
    def disturb(step: int, model: nn.Module) -> None:
        if step >= 105:
            model.weight.grad.mul_(torch.nan)

    hooks = module(
        "for p in parameters before optimizer.step when present(p.grad) expect finite(p.grad)"
    )
    done = train(hooks, 130, disturb, check_steps=SCHEDULE)
    assert done.checker is not None
    assert {one["step"] for one in done.found} == {120, 121, 122, 123}


def test_a_script_goes_on_after_what_a_rule_raises_where_steps_are_left_out() -> None:
    """The boundary between the last checked step and the first one that is left out raises."""
    rules = (
        "each step when step == 103 expect finite(loss) and step < 103 else raise",
        "each step expect count(calls(optimizer.step)) == 1",
    )
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    raised = 0
    with module(*rules).install(check_steps=SCHEDULE) as checker:
        for _ in range(130):
            try:
                optimizer.zero_grad()
            except RuntimeError:
                raised += 1
                optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            optimizer.step()
        assert checker.faults == []
    assert raised == 1
    assert checker.rules[1].counts["violated"] == 0
    assert checker.rules[1].counts["holds"] == 103 + 4


def test_an_action_counts_checked_steps() -> None:
    def disturb(step: int, model: nn.Module) -> None:
        if step >= 103:
            model.weight.grad.mul_(torch.nan)

    rule = (
        "for p in parameters before optimizer.step when present(p.grad) expect finite(p.grad)"
        " else stop after 6 consecutive steps"
    )
    with pytest.raises(SystemExit):
        train(module(rule), 200, disturb, check_steps=SCHEDULE)


def apart(rank: int, meeting: str, folder: Path, rule: str, fault: int) -> None:
    """Train alike on both ranks; after step `fault` rank 1 has other weights."""
    join(rank, meeting)
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    found: list[Any] = []
    with module(rule).install(callback=found.append, check_steps=SCHEDULE) as checker:
        step = 0
        try:
            for step in range(1, 150):
                optimizer.zero_grad()
                model(torch.ones(4, 3)).square().mean().backward()
                for each in model.parameters():
                    dist.all_reduce(each.grad)
                optimizer.step()
                if step == fault and rank == 1:
                    with torch.no_grad():
                        model.weight.add_(1.0)
        finally:
            of = sorted({one["step"] for one in found})
            held = sum(rule.counts["holds"] for rule in checker.rules)
            text = f"{step} {of} {held} {checker.faults}"
            (folder / str(rank)).write_text(text, encoding="utf-8")
    dist.destroy_process_group()


SAME = "for p in parameters across world each step expect same(p.data)"


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("response", "code", "said"),
    [
        ("", 0, "149 [120, 121, 122, 123, 140, 141, 142, 143]"),
        (" else stop", 1, "121 [120]"),
        (" else stop after 6 consecutive steps", 1, "142 [141]"),
    ],
)
def test_ranks_check_the_same_steps_and_act_together(
    tmp_path: Path, response: str, code: int, said: str
) -> None:
    assert ranks(apart, tmp_path, SAME + response, 107) == [code, code]
    assert (tmp_path / "0").read_text(encoding="utf-8").startswith(said)
    assert (tmp_path / "1").read_text(encoding="utf-8").startswith(f"{said.split()[0]} []")


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    "rule",
    [
        f"{SAME} else stop",
        "for c in calls(all_reduce) across c.group expect same(c.tensor.shape) and same(c.op) else stop",
        "for p in parameters across world after backward expect same(p.data.shape) else stop",
    ],
)
def test_ranks_that_agree_give_no_finding(tmp_path: Path, rule: str) -> None:
    assert ranks(apart, tmp_path, rule, 0) == [0, 0]
    said = [(tmp_path / str(rank)).read_text(encoding="utf-8").split() for rank in (0, 1)]
    assert [(step, found, *faults) for step, found, _, *faults in said] == [("149", "[]", "[]")] * 2
    held = sum(int(one[2]) for one in said)
    checked = sum(schedule_of(SCHEDULE).checks(step, 1) for step in range(1, 150))
    assert held == 2 * checked
