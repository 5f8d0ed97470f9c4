"""Every `tspec` block of the documentation loads in canonical form, and those marked bad do not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tspec.resolve import load_text
from tspec.source import Source
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```tspec( bad)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADER = "edition 2026\n\nmodule example\n\nuse std.torch\n\n"


def blocks() -> list[tuple[str, str, bool]]:
    found = []
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text())):
            text = match[2] if match[2].startswith("edition") else HEADER + match[2]
            found.append((f"{page.name}-{number}", text, match[1] is not None))
    return found


EXAMPLES = [pytest.param(text, bad, id=name) for name, text, bad in blocks()]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8
    assert any(bad for _, _, bad in blocks())


@pytest.mark.parametrize(("text", "bad"), EXAMPLES)
def test_an_example_says_what_it_is_said_to(text: str, bad: bool) -> None:
    loaded = load_text(text, name="example.tspec")
    errors = [d.message for d in loaded.diagnostics if d.severity == "error"]
    assert bool(errors) == bad, errors


@pytest.mark.parametrize(("text", "bad"), EXAMPLES)
def test_an_example_is_in_canonical_form(text: str, bad: bool) -> None:
    assert format_file(parse(Source("example.tspec", text)).file) == text
