"""What users of rules say about them: in a spec, for a project, on the command line."""

from pathlib import Path

import pytest

from tspec import __version__
from tspec.config.settings import RuleAction, RuleOverride
from tspec.resolve import load
from tspec.resolve.load import Loaded
from tspec.source import Source, Span

PACK = """edition 2026

module pack version "1.4"

use std.torch

invariant small {
  each step
  expect loss < 10
  else warn, then stop after 5 consecutive steps
}

invariant positive {
  each step
  expect loss > 0
  else warn
}

invariant at_the_end {
  each run
  expect loss < 1
  else warn
}

draft invariant unsure {
  each step
  expect loss < 3
}
"""
OWN = """
invariant own {
  each step
  expect loss < 100
  else warn
}
"""


def head(name: str, *uses: str) -> str:
    return "\n".join([f"edition 2026\n\nmodule {name}\n", *uses, ""])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "pack.tspec").write_text(PACK)
    return tmp_path


def said(rule: str, action: RuleAction, *, line: int = 1, by: str = "") -> RuleOverride:
    text = "\n" * (line - 1) + rule
    return RuleOverride(rule, action, Source("tspec.toml", text), Span(line - 1, len(text)), by)


def loaded(project: Path, text: str, *settings: RuleOverride) -> Loaded:
    path = project / "mine.tspec"
    path.write_text(text)
    return load([path], project=project, settings=settings)


def actions(found: Loaded) -> dict[str, str]:
    """What each rule does, by its qualified name; those that are off are `off`."""
    assert found.program is not None, [d.message for d in found.diagnostics]
    done = {
        rule.qualified: " ".join(f"{r.action}{r.consecutive or ''}" for r in rule.responses)
        for rule in found.program.rules
    }
    return done | {rule.qualified: "off" for rule in found.program.off}


def codes(found: Loaded) -> list[str]:
    return [diagnostic.code for diagnostic in found.diagnostics]


def test_use_takes_names_and_with_takes_the_rules_along(project: Path) -> None:
    plain = loaded(project, head("mine", "use std.torch", "use pack") + OWN)
    assert actions(plain) == {"mine.own": "warn"}
    found = loaded(
        project, head("mine", "use std.torch", "use pack with small: off, positive: raise") + OWN
    )
    assert codes(found) == []
    assert actions(found) == {
        "mine.own": "warn",
        "pack.small": "off",
        "pack.positive": "raise",
        "pack.at_the_end": "warn",
        "pack.unsure": "warn",
    }
    assert found.program is not None
    [off] = found.program.off
    assert off.set_by == f"{project / 'mine.tspec'}:6"
    [changed] = [rule for rule in found.program.rules if rule.set_by]
    assert changed.qualified == "pack.positive"


def test_only_the_action_changes(project: Path) -> None:
    before = load([project / "pack.tspec"], project=project).program
    after = loaded(project, head("mine", "use pack with small: warn")).program
    assert before is not None and after is not None
    old = next(rule for rule in before.rules if rule.name == "small")
    new = next(rule for rule in after.rules if rule.name == "small")
    assert [r.action for r in old.responses] == ["warn", "stop"]
    assert [r.action for r in new.responses] == ["warn"]
    assert (new.subjects, new.window, new.when, new.expect) == (
        old.subjects,
        old.window,
        old.when,
        old.expect,
    )


def test_who_uses_another_file_decides(project: Path) -> None:
    (project / "inner.tspec").write_text(head("inner", "use pack with small: off, positive: stop"))
    found = loaded(project, head("mine", "use inner with small: warn"))
    assert codes(found) == []
    assert actions(found)["pack.small"] == "warn"
    assert actions(found)["pack.positive"] == "stop"


def test_a_module_that_nobody_asked_for_decides_nothing(project: Path) -> None:
    (project / "inner.tspec").write_text(head("inner", "use pack with small: off"))
    found = loaded(project, head("mine", "use std.torch", "use inner") + OWN)
    assert actions(found) == {"mine.own": "warn"}


def test_two_files_that_disagree_are_an_error_wherever_they_stand(project: Path) -> None:
    (project / "a.tspec").write_text(head("a", "use pack with small: off"))
    (project / "b.tspec").write_text(head("b", "use pack with small: stop"))
    both = load([project / "a.tspec", project / "b.tspec"], project=project)
    assert codes(both) == ["TS0196"]
    decided = loaded(project, head("mine", "use a", "use b", "use pack with small: raise"))
    assert codes(decided) == []
    assert actions(decided)["pack.small"] == "raise"


def test_the_project_and_the_command_line_count_more(project: Path) -> None:
    text = head("mine", "use pack with small: off")
    found = loaded(project, text, said("pack.small", "stop", line=7))
    assert actions(found)["pack.small"] == "stop"
    assert found.program is not None
    assert [r.set_by for r in found.program.rules if r.name == "small"] == ["tspec.toml:7"]
    found = loaded(
        project, text, said("pack.small", "stop"), said("pack.*", "off", by="the command line")
    )
    assert set(actions(found).values()) == {"off"}
    assert found.program is not None
    assert {rule.set_by for rule in found.program.off} == {"the command line"}


def test_a_name_is_more_exact_than_a_star(project: Path) -> None:
    found = loaded(
        project, head("mine", "use pack"), said("pack.small", "stop"), said("pack.*", "off")
    )
    assert codes(found) == []
    assert actions(found)["pack.small"] == "stop"
    assert actions(found)["pack.positive"] == "off"


def test_a_star_of_the_project_leaves_what_a_spec_says_of_one_rule(project: Path) -> None:
    text = head("mine", "use pack with small: off")
    found = loaded(project, text, said("pack.*", "warn"))
    assert actions(found)["pack.small"] == "off"
    found = loaded(project, text, said("pack.*", "raise", by="the command line"))
    assert actions(found)["pack.small"] == "raise"


def test_a_rule_that_is_not_loaded_may_be_set_and_one_that_is_nowhere_not(project: Path) -> None:
    text = head("mine", "use std.torch") + OWN
    fine = ("pack.small", "std.health.loss_does_not_spike", "std.advice.*", "std.*", "mine.own")
    assert codes(loaded(project, text, *(said(rule, "off") for rule in fine))) == []
    for wrong, hint in (
        ("pack.smal", "`small`"),
        ("std.helth.loss_does_not_spike", "`std.health`"),
        ("std.health.loss_does_not_spik", "`loss_does_not_spike`"),
        ("ownn", None),
        ("st.*", None),
    ):
        found = loaded(project, text, said(wrong, "off"))
        assert codes(found) == ["TS0194"], wrong
        assert hint is None or f"did you mean {hint}" in str(found.diagnostics[0].hint)


def test_what_changes_nothing_is_told_but_not_of_the_command_line(project: Path) -> None:
    text = head("mine", "use pack")
    assert codes(loaded(project, text, said("pack.positive", "warn"))) == ["TS0197"]
    assert codes(loaded(project, text, said("pack.unsure", "stop"))) == ["TS0197"]
    assert codes(loaded(project, text, said("pack.*", "warn"))) == []
    assert codes(loaded(project, text, said("pack.positive", "warn", by="the command line"))) == []
    again = loaded(
        project, head("mine", "use pack with positive: off"), said("pack.positive", "warn")
    )
    assert codes(again) == []
    assert actions(again)["pack.positive"] == "warn"


def test_an_action_that_comes_too_late_is_refused(project: Path) -> None:
    found = loaded(project, head("mine", "use pack"), said("pack.at_the_end", "rollback"))
    assert codes(found) == ["TS0155"]


def test_versions(project: Path) -> None:
    for wanted, fits in (
        ("1", True),
        ("1.4", True),
        ("1.4.1", False),
        ("2", False),
        ("0.9", False),
    ):
        found = loaded(project, head("mine", f'use pack version "{wanted}"'))
        assert codes(found) == ([] if fits else ["TS0199"]), wanted
    assert found.program is None
    whole = load([project / "pack.tspec"], project=project).program
    assert whole is not None
    assert whole.versions == {"pack": "1.4", "std.torch": __version__}
