"""Damaged `tspec.toml` and `pyproject.toml`: each is accepted, or its errors are TS05xx at their places."""

from __future__ import annotations

import contextlib
import os
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.cli.recordings import record_loop
from tests.faults.commands import tspec
from tests.faults.mutations import damaged_text
from tests.faults.outcome import Failure, Outcome, Progress
from tspec.config.read import KEYS, NAMES, find, read
from tspec.diagnostics import render
from tspec.explain import explain

WHOLE = """specs = ["rule.tspec", "std.hygiene"]
output-format = "github"
baseline = "accepted.json"

[rules]
"std.health.loss_does_not_spike" = "off"
std.health.gradients_are_finite = "stop"
"std.advice.*" = "warn"

[lint]
select = ["TS04"]
ignore = ["TS0402", "TS0403"]
passes = 20
collectives = 2.5

[lint.per-file-ignores]
"specs/drafts/*" = ["TS0404"]

[fmt]
exclude = ["runs/*"]

[test]
paths = ["specs"]
fail-under = 90
"""
"""Every key that there is."""

PYPROJECT = """[project]
name = "job"

[tool.tspec]
specs = ["rule.tspec"]
lint = {ignore = ["TS0450"], per-file-ignores = {"a.tspec" = ["TS04"]}}

[tool.tspec.rules]
"std.hygiene.gradients_are_cleared" = "off"

[tool.ruff]
line-length = 100
"""
RULE = """edition 2026

module rule

use std.torch

/// Each step clears.
invariant clears {
  each step
  expect contains optimizer.zero_grad
  else warn
}
"""
WORDS = (
    *KEYS, "select", "ignore", "passes", "fail-under", "[rules]", "[lint]", "[[lint]]", "[tool.tspec]", "[tool]",
    "[test]", '"off"', '"TS0402"', '["TS04"]', "true", "-5", "2.5", "1979-05-27", "{a = 1}", "'''", '"""', "inf",
)  # fmt: skip
COMMAND_EACH = 40
"""Every so many inputs a command is run with the configuration; the others are only read."""


def run(count: int, seed: int, progress: Progress = lambda done: None) -> Outcome:
    """Damage `count` configurations."""
    counts: Counter[str] = Counter()
    failures: list[Failure] = []
    with _project() as folder:
        for number in range(count):
            chance = Random(f"configuration {seed} {number}")
            name = chance.choice(NAMES)
            text = damaged_text(WHOLE if name == NAMES[0] else PYPROJECT, chance, WORDS)
            content = text.encode("utf-8", "replace")
            (folder / name).write_bytes(content)
            try:
                outcome, problem = _look(folder, number % COMMAND_EACH == 0)
            except Exception:
                outcome, problem = "", traceback.format_exc()
            if problem is None:
                counts[outcome] += 1
            else:
                failures.append(Failure(f"configuration-{seed}-{number}", problem, {name: content}))
            (folder / name).unlink()
            progress(number + 1)
    return Outcome(dict(counts), tuple(failures))


@contextlib.contextmanager
def _project() -> Iterator[Path]:
    """A project with a rule and a recording, as the working folder."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made).resolve()
        (folder / "rule.tspec").write_text(RULE)
        record_loop(folder / "run")
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def _look(folder: Path, command: bool) -> tuple[str, str | None]:
    """The outcome of one configuration, and what is wrong with it."""
    found = find(folder)
    if not found:
        return "no table of tspec's", None
    said = read(found).diagnostics
    for each in said:
        rendered = render(each)
        explain(each.code)
        if not each.code.startswith("TS05") or not 0 <= each.span.start <= len(each.source.text):
            return "", f"a diagnostic out of place: {rendered}"
    if command:
        ran = tspec("check", "--trace", "run")
        if ran.problem is not None:
            return "", ran.problem
        errors = [each for each in said if each.severity == "error"]
        if errors and (ran.status != 2 or errors[0].code not in ran.err):
            return "", f"errors do not end the command: {ran}"
    return ("a TS05xx error" if said else "accepted"), None
