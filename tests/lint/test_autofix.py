"""Mending keeps what rules mean, ends, and never lets one edit run into another."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.check.agreement import decided_otherwise
from tests.check.jobs import job, random_shape
from tests.check.strategies import spec
from tests.logic.redundant import body
from tspec.diagnostics import Diagnostic
from tspec.lint import Edit, LintFinding, Settings, SuggestedFix, autofix
from tspec.lint.autofix import FixedFiles
from tspec.lint.edits import applied, compatible
from tspec.resolve import Loaded, load, load_text
from tspec.source import Source, Span
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse

CASES = 20
FILE = Path("fixed.tspec")
HEAD = "edition 2026\n\nmodule example\n\nuse std.torch\n\n"


def with_faults(dice: Random, text: str) -> str:
    """The same rules, with what lint fixes written into them: each says what it said."""
    for old, new in (
        ("p.requires_grad", "p.requires_grad == true"),
        ("phase == eval", "not (phase != eval)"),
        ("enabled", "not not enabled"),
        (" and ", " and (step >= 0) and "),
        ("p.order == 1", "not p.order != 1"),
        ("  expect ", "  when true\n  expect "),
    ):
        if dice.random() < 0.5 and not ("when" in new and "when" in text):
            text = text.replace(old, new, 1)
    return text


def some(dice: Random) -> list[str]:
    """Three bodies that resolve, with faults."""
    found: list[str] = []
    while len(found) < 3:
        each = with_faults(dice, body(dice))
        if load_text(spec([each])).program is not None:
            found.append(each)
    return found


def fixed(text: str, unsafe: bool = False) -> tuple[FixedFiles, Loaded, str]:
    """The result of fixing one text, and the text."""

    def read(texts: dict[Path, str]) -> Loaded:
        return load([FILE], texts={FILE: texts.get(FILE, text)})

    done = autofix(read, Settings(), unsafe)
    after = done.changed[FILE][1] if FILE in done.changed else text
    return done, read({FILE: after}), after


@pytest.fixture(autouse=True)
def a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FILE.write_text("")


@pytest.mark.slow
def test_fixed_rules_decide_as_before() -> None:
    seen: Counter[str] = Counter()
    for number in range(CASES):
        dice = Random(f"mend {number}")
        text = spec(some(dice))
        before = load([FILE], texts={FILE: text})
        assert before.program is not None
        done, after, new = fixed(text)
        seen["fixed"] += done.fixed
        assert after.program is not None
        names = {rule.name: rule for rule in after.program.rules}
        trace = job(random_shape(dice))
        for rule in before.program.rules:
            other = names.pop(rule.name)
            assert other.responses == rule.responses
            assert decided_otherwise(rule, other, trace) == []
        assert not names
        again, _, same = fixed(new)
        assert same == new and not again.changed
        if done.changed:
            assert format_file(parse(Source("a.tspec", new)).file) == new
    assert seen["fixed"] > 2 * CASES, seen


@pytest.mark.slow
def test_unsafe_fixes_leaves_a_spec_that_loads() -> None:
    for number in range(CASES // 3):
        dice = Random(f"unsafe {number}")
        _, after, new = fixed(spec(some(dice)), unsafe=True)
        assert after.program is not None
        assert fixed(new, unsafe=True)[2] == new


def test_a_fix_that_cannot_be_proved_is_left_alone() -> None:
    # Without the guard the rule would not be unknown where no loss was recorded.
    text = HEAD + (
        "invariant epochs_are_few {\n  each step\n  when present(loss)\n  expect epoch < 3\n"
        "  else warn\n}\n"
    )
    done, _, after = fixed(text)
    assert after == text and not done.changed
    assert [each.code for each in done.left] == ["TS0413"]


def test_a_file_that_nothing_is_wrong_with_is_not_reformatted() -> None:
    text = HEAD + "invariant epochs_are_few {\n  each step\n\n\n  expect epoch<3\n  else warn\n}\n"
    assert fixed(text)[0].changed == {}


def finding(*edits: Edit) -> LintFinding:
    source = Source("a.tspec", "0123456789")
    return LintFinding(
        Diagnostic("TS0400", "it", edits[0].span, source),
        "it",
        SuggestedFix("fix it", tuple(edits)),
    )


def test_edits_that_meet_wait_for_another_round() -> None:
    first = finding(Edit(Span(2, 4), "a"), Edit(Span(8, 9), ""))
    inside = finding(Edit(Span(3, 3), "b"))
    touching = finding(Edit(Span(4, 6), "c"))
    apart = finding(Edit(Span(6, 7), "d"))
    same = finding(Edit(Span(2, 4), "a"))
    assert compatible([first, inside, touching, apart, same]) == (first, apart, same)
    edits = [e for f in (first, apart, same) if f.fix for e in f.fix.edits]
    assert applied("0123456789", edits) == "01a45d79"
