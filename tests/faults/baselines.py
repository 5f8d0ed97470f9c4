"""Damaged baselines: each is accepted and applied, or is said to be none."""

from __future__ import annotations

import contextlib
import json
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.cli.recordings import record_loop
from tests.faults.commands import tspec
from tests.faults.configurations import RULE
from tests.faults.mutations import damaged_bytes, damaged_json, damaged_text
from tests.faults.outcome import Failure, Outcome, Progress
from tspec.check import check
from tspec.report.baseline import apply, updated
from tspec.report.baseline_file import BaselineError, read, text
from tspec.report.build import report
from tspec.report.results import Results, from_report
from tspec.resolve import load

COMMAND_EACH = 40
"""Every so many inputs the command is run with the baseline; the others are read and applied."""


def run(count: int, seed: int, progress: Progress = lambda done: None) -> Outcome:
    """Damage `count` baselines."""
    counts: Counter[str] = Counter()
    failures: list[Failure] = []
    with _project() as (folder, results):
        whole = text(updated((), results))
        for number in range(count):
            chance = Random(f"baseline {seed} {number}")
            content = _damaged(whole, chance)
            file = folder / "baseline.json"
            file.write_bytes(content)
            try:
                outcome, problem = _look(file, results, number % COMMAND_EACH == 0)
            except Exception:
                outcome, problem = "", traceback.format_exc()
            if problem is None:
                counts[outcome] += 1
            else:
                name = f"baseline-{seed}-{number}"
                failures.append(Failure(name, problem, {"baseline.json": content}))
            progress(number + 1)
    return Outcome(dict(counts), tuple(failures))


@contextlib.contextmanager
def _project() -> Iterator[tuple[Path, Results]]:
    """A folder with a rule and a recording that violates it, and the results of a check."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        (folder / "rule.tspec").write_text(RULE)
        trace = record_loop(folder / "run", clears=False)
        program = load([folder / "rule.tspec"]).program
        assert program is not None
        results = from_report(report(program, check(program, trace)), program)
        assert results.results
        yield folder, results


def _damaged(whole: str, chance: Random) -> bytes:
    kind = chance.random()
    if kind < 0.5:
        damaged = damaged_json(json.loads(whole), chance)
        return json.dumps(damaged, ensure_ascii=chance.random() < 0.5).encode("utf-8", "replace")
    if kind < 0.8:
        return damaged_text(whole, chance).encode("utf-8", "replace")
    return damaged_bytes(whole.encode(), chance)


def _look(file: Path, results: Results, command: bool) -> tuple[str, str | None]:
    """The outcome of one baseline, and what is wrong with it."""
    try:
        entries = read(file)
    except BaselineError as error:
        outcome = "an error that names the file"
        if str(file) not in str(error) or "\n" in str(error):
            return "", f"an unclear error: {error}"
    else:
        outcome = "accepted"
        applied = apply(results, entries)
        if len(list(applied.results.flat())) > len(list(results.flat())):
            return "", "a baseline adds findings"
        written = text(updated(entries, results))
        file.write_text(written, encoding="utf-8")
        if text(read(file)) != written:
            return "", "a baseline that was updated is not read as it was written"
    if not command:
        return outcome, None
    rule, trace = file.with_name("rule.tspec"), file.with_name("run")
    ran = tspec("check", rule, "--trace", trace, "--no-config", "--baseline", file)
    if ran.problem is not None:
        return "", ran.problem
    if (outcome == "accepted") == (ran.status == 2):
        return "", f"the command and the reader differ: {ran}"
    return outcome, None
