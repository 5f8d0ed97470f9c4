"""One job, recorded and checked at once: the hooks decide in it what the reference decides over the recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from tests.runtime.training import HEAD, Trained, loop
from tspec.check.interpret import interpret
from tspec.record.destination import Destination
from tspec.record.start import recorder_of
from tspec.record.watch import watch_spec
from tspec.resolve import load_text
from tspec.resolve.program.rules import Program
from tspec.runtime.ledger import Outcome
from tspec.runtime.live import Job
from tspec.targets.compile import compile_program
from tspec.targets.load import module_of
from tspec.trace.read import read_trace

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
invariant whole { each run expect count(calls(optimizer.step)) == 5 }
"""


def program(text: str) -> Program:
    loaded = load_text(HEAD + text)
    assert loaded.program is not None, [d.message for d in loaded.diagnostics]
    return loaded.program


Key = tuple[str, tuple[int, ...], tuple[int, int], tuple[str, ...]]
Found = tuple[str, str, int]
"""Verdict, reason, step."""


def recorded_and_checked(
    folder: Path, text: str, train: Callable[[], object]
) -> tuple[dict[Key, Found], dict[Key, Found], Sequence[str]]:
    """What the reference and a job's checker decide of what `train` does, and the checker's faults.

    They also count alike.
    """
    rules = program(text)
    spec = watch_spec(rules.vocabulary)
    recorder = recorder_of(Destination(folder / "trace"), spec, "test")
    seen: list[Outcome] = []
    checker = module_of(compile_program(rules)).hooks(observer=seen.append)
    torch.manual_seed(0)
    with Job(spec, [recorder, checker]):
        train()
    recorder.close()
    found = interpret(rules.rules, read_trace(folder / "trace")).decided
    expected = {
        (d.instance.rule, d.instance.ranks, d.instance.at, d.instance.subjects): (
            d.verdict,
            d.reason,
            d.step,
        )
        for d in found
    }
    names = [rule.declared.name for rule in checker.rules]
    decided = {
        (names[o.rule], o.ranks, o.at, o.subjects): (o.verdict, o.reason, o.step) for o in seen
    }
    for rule in checker.rules:
        counts = Counter(d.verdict for d in found if d.instance.rule == rule.declared.name)
        assert +Counter(rule.counts) == counts, rule.declared.name
    return expected, decided, checker.faults


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
    assert {"holds", "violated", "idle"} <= {verdict for verdict, _, _ in decided.values()}
    assert len({key[0] for key in decided}) == len(RULES.strip().splitlines())
