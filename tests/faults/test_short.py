"""A short run of each fuzzer; `make fuzz` is the long one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.recordings import record_loop
from tests.families import EXHAUSTIVE
from tests.faults import baselines, configurations, crafted, disks, kills, traces
from tests.faults.commands import tspec
from tests.faults.outcome import Outcome

SEED = 2026


@pytest.mark.parametrize(
    ("run", "count", "expected"),
    [
        (configurations.run, 200, {"a TS05xx error", "accepted"}),
        (baselines.run, 80, {"an error that names the file", "accepted"}),
        pytest.param(
            *(traces.run, 60, {"a clear error", "a cut that is reported"}), marks=pytest.mark.slow
        ),
        pytest.param(crafted.run, 6, set(), marks=pytest.mark.slow),
        pytest.param(crafted.run, 12, set(), marks=EXHAUSTIVE),
        pytest.param(kills.run, 2, set(), marks=pytest.mark.slow),
        pytest.param(disks.run, 1, set(), marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "__module__", None),
)
def test_no_input_fails(run: Callable[[int, int], Outcome], count: int, expected: set[str]) -> None:
    """Nothing fails, and the inputs are neither all accepted nor all refused."""
    outcome = run(count, SEED)
    assert [(each.name, each.problem) for each in outcome.failures] == []
    assert outcome.tried == count
    assert expected <= set(outcome.counts)


def test_a_report_goes_to_the_terminal_where_the_disk_is_full(tmp_path: Path) -> None:
    """`/dev/full` is a file on a disk without room."""
    trace = record_loop(tmp_path / "run", clears=False)
    (tmp_path / "rule.tspec").write_text(configurations.RULE)
    told = ("check", tmp_path / "rule.tspec", "--trace", trace, "--no-config")
    ran = tspec(*told, "--report", "/dev/full")
    assert ran.problem is None
    assert ran.status == 1
    assert "/dev/full cannot be written: " in ran.err
    assert "rule.clears" in ran.out
    written = tmp_path / "report.json"
    tspec(*told, "--report", written)
    assert written.read_text() in ran.err
