"""What is said about specs that are read and mean nothing: one case file for each message.

`--- name` in a case begins another file beside the first one; an empty one is asked for and not there.
"""

import re
from pathlib import Path

import pytest

import tspec
from tspec.diagnostics import WIDTH, render
from tspec.resolve import load

FOLDER = Path(__file__).parents[1] / "cases" / "errors"
CASES = sorted(FOLDER.glob("*.case"))
ROOM = Path(tspec.__file__).parent


def files_of(path, text):
    """The files of a case by name."""
    files = {f"{path.stem}.tspec": ""}
    name = f"{path.stem}.tspec"
    for line in text.splitlines(keepends=True):
        if line.startswith("--- "):
            name = line.removeprefix("--- ").strip()
            files[name] = ""
        else:
            files[name] += line
    if not files[f"{path.stem}.tspec"]:
        del files[f"{path.stem}.tspec"]
    return files


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path, case_input, check_case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = files_of(path, case_input(path))
    for name, text in files.items():
        if text:
            Path(name).write_text(text)
    loaded = load([Path(name) for name in files], project=tmp_path)
    assert loaded.program is None
    rendered = [render(found) for found in loaded.diagnostics]
    assert all(len(line) <= WIDTH for text in rendered for line in text.splitlines())
    check_case(path, {"diagnostics": "\n\n".join(rendered).replace(str(ROOM.parent), "…")})


def test_every_code_is_produced_by_a_case():
    shown = "".join(path.read_text(encoding="utf-8") for path in CASES)
    used = {
        code
        for path in (ROOM / "resolve").glob("*.py")
        for code in re.findall(r'"(TS\d{4})"', path.read_text(encoding="utf-8"))
    }
    assert sorted(code for code in used if f"[{code}]" not in shown) == []
