"""What lint says of rules is so on random jobs, instance by instance, as the interpreter decides them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.check.jobs import job, random_shape
from tests.check.strategies import spec
from tests.families import family
from tests.logic.redundant import body, pair
from tspec.check.interpret import interpret
from tspec.check.verdicts import Verdicts
from tspec.lint import LintFinding, lint
from tspec.resolve import load, load_text
from tspec.resolve.program.rules import Expr, Holds, Present, Rule
from tspec.resolve.program.types import BOOL
from tspec.resolve.program.walk import parts
from tspec.trace.model import Trace

CASES = 60
WITH_STEPS = (
    "  each step every 2 steps\n  when step == {n} and loss > 1\n  expect epoch > 1",
    "  each step every 3 steps\n  when divisible(step + 1, by: 3) or step == {n}\n  expect loss > 1",
    "  each step once\n  expect previous(loss) > {n}",
    "  each step once\n  expect mean(loss, over: 2 steps) > {n}",
    "  each epoch\n  when step > {n} and step < 2\n  expect loss > 1",
)

Key = tuple[object, ...]


def verdicts_of(found: Verdicts, rule: str) -> dict[Key, str]:
    return {
        (each.instance.ranks, each.instance.subjects, each.instance.at): each.verdict
        for each in found.decided
        if each.instance.rule == rule
    }


def other_of(finding: LintFinding) -> str:
    """The rule to which a finding points."""
    place = finding.diagnostic.related[0]
    return finding.diagnostic.source.slice(place.span)


def is_never_known(finding: LintFinding, rules: Sequence[Rule], trace: Trace) -> bool:
    """The part of a rule to which a finding points has a value in no instance."""
    [rule] = [each for each in rules if each.qualified == finding.invariant]
    spot = finding.diagnostic.span
    part = next(p for p in parts(rule) if isinstance(p, Expr) and p.span == spot)
    alone = replace(rule, when=None, expect=Holds(Present(BOOL, spot, part)))
    return set(verdicts_of(interpret([alone], trace), rule.qualified).values()) <= {
        "unknown",
        "idle",
    }


def is_so(finding: LintFinding, found: Verdicts, module: str) -> bool:
    own = verdicts_of(found, finding.invariant)
    match finding.code:
        case "TS0401" | "TS0420":
            return set(own.values()) <= {"idle", "unknown"}
        case "TS0402":
            return "violated" not in own.values()
        case "TS0403":
            other = verdicts_of(found, f"{module}.{other_of(finding)}")
            return all(other.get(k) == "violated" for k, v in own.items() if v == "violated")
        case "TS0404":
            return own == verdicts_of(found, f"{module}.{other_of(finding)}")
    return True


@pytest.mark.parametrize("part", family(range(2), (), {"0"}))
def test_findings_are_so(part: int, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    file = tmp_path / "it.tspec"
    file.write_text("")
    for number in range(part, CASES, 2):
        dice = Random(f"true {number}")
        bodies = [body(dice) for _ in range(4)]
        bodies += [dice.choice(WITH_STEPS).format(n=dice.randint(1, 3)) for _ in range(2)]
        rules = [each for each in bodies if load_text(spec([each])).program is not None]
        texts = [spec(rules)]
        two = pair(dice)
        texts += [two] if load_text(two).program is not None else []
        trace = job(random_shape(dice))
        for text in texts:
            loaded = load([file], texts={file: text})
            assert loaded.program is not None
            found = interpret(loaded.program.rules, trace)
            module = re.search(r"module (\S+)", text)
            for finding in lint(loaded):
                seen[finding.code] += 1
                assert is_so(finding, found, module[1] if module else ""), (finding, text)
    for code in ("TS0401", "TS0402", "TS0403", "TS0405", "TS0407", "TS0420", "TS0422"):
        assert seen[code] >= 2, seen
