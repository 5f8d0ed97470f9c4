"""What is said of two versions of a spec: case files, old and new in, text out."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from tests.conftest import CaseCheck
from tspec.diff import Changes, compare, load_side
from tspec.diff.formats.markdown import as_markdown
from tspec.diff.formats.terminal import print_changes

FOLDER = Path(__file__).parents[1] / "cases" / "diff"
CASES = sorted(FOLDER.glob("*.txt"))
HEADER = "edition 2026\n\nmodule project\n\nuse std.torch\n\n"


def changes(text: str, folder: Path) -> Changes:
    """The changes between the two texts of a case, each in a folder of its own."""
    sides = []
    for name, part in zip(("old", "new"), text.split("--- new\n"), strict=True):
        place = folder / name
        place.mkdir()
        file = place / "rules.tspec"
        file.write_text(part if part.startswith("edition") else HEADER + part.lstrip("\n"))
        sides.append(load_side(name, [file], shown={f"{folder}/": ""}))
    return compare(*sides)


def shown(found: Changes, width: int = 80) -> str:
    """As a terminal shows it."""
    out = io.StringIO()
    print_changes(found, Console(file=out, width=width, color_system=None))
    return out.getvalue()


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(
    path: Path, tmp_path: Path, case_input: Callable[[Path], str], check_case: CaseCheck
) -> None:
    found = changes(case_input(path), tmp_path)
    text = shown(found)
    assert all(len(line) <= 80 or " " not in line.strip() for line in text.splitlines()), text
    check_case(path, {"text": text})


def test_every_kind_of_change_has_a_case() -> None:
    said = "\n".join(path.read_text(encoding="utf-8") for path in CASES)
    kinds = (
        "removed", "loosened", "incomparable", "unknown", "tightened", "added", "renamed",
        "draft accepted", "equivalent", "changed",
    )  # fmt: skip
    parts = (
        "subjects",
        "group",
        "window",
        "thinning",
        "when",
        "expect",
        "action",
        "draft",
        "place",
        *(
            "layout",
            "reference",
            "candidate",
            "equal when",
            "sweep",
            "require",
            "cover",
            "run",
            "input",
            "compare",
            "within",
            "store",
            "localize",
        ),
    )
    assert [kind for kind in kinds if f"\n{kind}  " not in said] == []
    assert [part for part in parts if f"\n  {part}: " not in said] == []


def test_a_comment_begins_with_a_table_and_folds_the_rest(tmp_path: Path) -> None:
    old = "invariant a {\n  each step\n  expect loss < 2\n}\n"
    text = as_markdown(changes(f"{old}--- new\n{old.replace('2', '3')}", tmp_path))
    assert text.startswith("### Rules: 1 loosened\n")
    assert (
        "| 🔴 | `project.a` | loosened | `step = 1, loss = 2.0: old violated, new holds` |" in text
    )
    assert text.count("<details>") == text.count("</details>") == 1
    assert "-  expect loss < 2\n+  expect loss < 3\n" in text
