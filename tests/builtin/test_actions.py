"""One row for each action: the type, the grammar, the configuration and the page have each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from tspec.builtin.actions import ACTIONS, ActionName
from tspec.config.settings import RULE_ACTIONS
from tspec.resources import shipped

LANGUAGE = Path(__file__).resolve().parents[2] / "docs/language.md"


def test_the_type_names_the_rows() -> None:
    assert [*ACTIONS] == [*get_args(ActionName)]


@pytest.mark.parametrize(("rule", "words"), [("action", [*ACTIONS]), ("rule_action", RULE_ACTIONS)])
def test_the_grammar_has_every_action(rule: str, words: list[str]) -> None:
    text = (shipped("grammars") / "tspec.lark").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^!{rule}: (.*)$", text, re.MULTILINE)
    assert sorted(re.findall(r'"(\w+)"', line)) == sorted(words)


def test_the_page_lists_the_actions() -> None:
    (cell,) = re.findall(r"^\| `else (.*?) \|", LANGUAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert re.findall(r"\w+", cell) == [*ACTIONS]
