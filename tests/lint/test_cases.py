"""What lint says: one case file for each finding, with what `--fix` makes of the file where it fixes one.

`--- name` in a case begins another file beside the first one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tspec.diagnostics import WIDTH, render
from tspec.lint import Settings, autofix, lint
from tspec.lint.registry import ALLOWANCES, RULES
from tspec.resolve import load

FOLDER = Path(__file__).parents[1] / "cases" / "lint"
CASES = sorted(FOLDER.glob("*.case"))
NAMES = [rule.name for rule in RULES] + [name for _, name in ALLOWANCES]


def files_of(path: Path, text: str) -> dict[str, str]:
    files: dict[str, str] = {}
    name = f"{path.stem}.tspec"
    for line in text.splitlines(keepends=True):
        if line.startswith("--- "):
            name = line.removeprefix("--- ").strip()
        else:
            files[name] = files.get(name, "") + line
    return files


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(
    path: Path,
    case_input: Callable[[Path], str],
    check_case: Callable[[Path, dict[str, str]], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    names = []
    for name, text in files_of(path, case_input(path)).items():
        Path(name).write_text(text)
        names.append(Path(name))
    loaded = load(names, project=tmp_path)
    assert not loaded.diagnostics
    said = [render(each.diagnostic) for each in lint(loaded)]
    for line in "\n".join(said).splitlines():
        assert len(line) <= WIDTH, line
    actual = {"findings": "\n\n".join(said)}
    for title, unsafe in (("fixed", False), ("fixed, also unsafely", True)):
        done = autofix(lambda texts: load(names, project=tmp_path, texts=texts), Settings(), unsafe)
        fixed = "".join(after for _, after in done.changed.values())
        if fixed and fixed not in actual.values():
            actual[title] = fixed
    check_case(path, actual)


def test_every_finding_has_a_case() -> None:
    assert {name.replace("-", "_") for name in NAMES} <= {path.stem for path in CASES}
    shown = "".join(path.read_text() for path in CASES)
    found = set(re.findall(r"warning\[(TS04\d\d)\]", shown))
    assert found == {rule.code for rule in RULES} | {code for code, _ in ALLOWANCES}
