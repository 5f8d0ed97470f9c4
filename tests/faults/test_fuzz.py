"""The command of the long run: what it prints, when it ends, and what it keeps of a failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.faults import fuzz
from tests.faults.fuzz import Chunk, Plan, chunks, table
from tests.faults.outcome import Failure, Outcome, save
from tests.faults.processes import ROOT, environment
from tests.faults.worker import Worker


def test_each_fuzzer_has_a_module() -> None:
    for plan in fuzz.PLANS:
        assert (ROOT / "tests" / "faults" / f"{plan.name}.py").is_file(), plan.name


def test_chunks_are_mixed_and_have_seeds_of_their_own() -> None:
    plans = (Plan("a", 10, 4), Plan("b", 2, 1))
    mixed = chunks(plans, 1.0, 7)
    assert [(c.name, c.count) for c in mixed] == [("a", 4), ("b", 1), ("a", 4), ("b", 1), ("a", 2)]
    assert len({(c.name, c.seed) for c in mixed}) == 5
    assert chunks(plans, 0.01, 7) == [Chunk("a", 1, 7000), Chunk("b", 1, 7000)]


def test_a_small_run_ends_with_a_table() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.fuzz", "--only", "configurations", "--scale", "0.001"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 chunks, 0 failed  (configurations)" in done.stderr
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert lines[0] == ["configurations", "20  tried"]
    assert ["0", "failed"] in lines
    assert "seed 0, " in done.stdout


def test_a_process_that_dies_is_a_failure() -> None:
    outcome = fuzz.run_chunk(Chunk("no_such_fuzzer", 1, 3))
    [failure] = outcome.failures
    assert failure.name == "no_such_fuzzer-3"
    assert "the process ended with 1" in failure.problem
    assert "No module named 'tests.faults.no_such_fuzzer'" in failure.problem


def test_a_worker_that_dies_is_started_again() -> None:
    with Worker("tests.faults.dying") as worker:
        assert worker.ask({"how": "well"}) == ("well", None)
        assert worker.ask({"how": "killed"}) == ("", "the process died with status -11")
        assert worker.ask({"how": "well"}) == ("well", None)
        outcome, problem = worker.ask({"how": "raised"})
        assert outcome == ""
        assert problem is not None and "ValueError: raised" in problem


def test_failing_inputs_are_kept_and_counted(tmp_path: Path) -> None:
    failed = Outcome({"fine": 2}, (Failure("trace-1-2", "wrong", {"a/b": b"\x00"}),))
    save(failed.failures, tmp_path)
    assert (tmp_path / "trace-1-2" / "problem.txt").read_text() == "wrong"
    assert (tmp_path / "trace-1-2" / "a" / "b").read_bytes() == b"\x00"
    assert table({"a": failed + failed}, [Chunk("a", 6, 0), Chunk("b", 7, 0)]).splitlines() == [
        "a  6  tried",
        "   4  fine",
        "   2  failed",
        "b  0  tried of 7, then the time was over",
        "   0  failed",
    ]
