"""TS0457: a file in an older edition of the language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.finding import Edit, Fix, Found
from tspec.lint.rule import LintRule
from tspec.source import Span
from tspec.syntax.editions import EDITIONS, upgrade
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse

_EDITION = re.compile(r"^[ \t]*edition[ \t]+(\d+)", re.MULTILINE)


def check(checked: Checked) -> Iterator[Found]:
    newest = EDITIONS[-1]
    for unit in checked.files:
        # The tree is in the newest edition already: only the text says which one was written.
        written = _EDITION.search(unit.source.text)
        if written is None or int(written[1]) >= newest:
            continue
        upgraded = upgrade(parse(unit.source).file)
        changes = f": {'; '.join(upgraded.done)}" if upgraded.done else ""
        message = f"the file is in the edition {written[1]}, and the newest is {newest}"
        hint = f"`tspec fmt --upgrade` writes it in the newest{changes}"
        whole = Edit(Span(0, len(unit.source.text)), format_file(upgraded.file))
        fix = Fix(f"write it in the edition {newest}", (whole,))
        yield Found(message, unit.source, Span(*written.span()), hint, fix=fix)


RULE = LintRule("TS0457", "older-edition", check)
