"""On recorded runs of the demo, all executors decide every instance of every shipped rule alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.families import EXHAUSTIVE
from tests.jobs import tspec
from tspec.check import columnar, replayed
from tspec.check.interpret import interpret
from tspec.check.verdicts import Instance, Verdicts
from tspec.resolve import load
from tspec.resources import shipped
from tspec.trace.read import read_trace

ROOT = Path(__file__).parents[2]


def record(out: Path, *arguments: str) -> None:
    """Record a short run of the demo's script."""
    script = str(ROOT / "docs" / "demo" / "digits.py")
    short = ("--epochs", "1", "--samples", "256")
    done = tspec("record", "-o", str(out), "--", script, *short, *arguments)
    assert done.returncode == 0, done.stderr[-2000:]


def by_instance(found: Verdicts) -> dict[Instance, tuple[str, str, int, Mapping[str, str]]]:
    """Instance -> verdict, reason, step, and the values of what is violated."""
    return {
        each.instance: (each.verdict, each.reason, each.step, each.values) for each in found.decided
    }


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), marks=EXHAUSTIVE),
        pytest.param(("--bug", "no-zero-grad"), marks=pytest.mark.slow),
        pytest.param(("--ranks", "2", "--bug", "unsynced"), marks=[pytest.mark.gloo, *EXHAUSTIVE]),
    ],
    ids=["clean", "no zero_grad", "unsynced"],
)
def test_executors_agree_on_a_recorded_run(arguments: tuple[str, ...], tmp_path: Path) -> None:
    record(tmp_path / "run", *arguments)
    program = load([shipped("stdlib")]).program
    assert program is not None
    trace = read_trace(tmp_path / "run")
    expected = by_instance(interpret(program.rules, trace))
    assert by_instance(replayed.check(program.rules, trace)) == expected
    assert by_instance(columnar.check(program.rules, tmp_path / "run")) == expected
    found = Counter(verdict for verdict, *_ in expected.values())
    assert found["holds"] > 100 and bool(found["violated"]) == bool(arguments), found
