"""The pages on configuration and continuous integration: their files are written, their commands run.

A block whose first line has a file's name after the language is that file; a `console` block is one
command and what it prints. `pytest --update-cases` writes what was printed into the page.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests import warm
from tests.cli.recordings import record_loop, record_ranks
from tests.families import EXHAUSTIVE
from tests.report.schemas import published
from tspec.config.read import KEYS, find, read
from tspec.resolve import load
from tspec.source import Source
from tspec.syntax.format import format_file
from tspec.syntax.parse import parse

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ["configuration.md", "ci.md", "lint.md", "testing.md"]
LONG = "tspec test specs/"
"""How commands begin that take over a minute: `make test-all` runs them."""
BLOCK = re.compile(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[re.Match[str]]:
    return list(BLOCK.finditer((DOCS / page).read_text(encoding="utf-8")))


def printed(command: str, folder: Path) -> str:
    path = os.pathsep.join(
        (str(warm.folder()), str(Path(sys.executable).parent), os.environ["PATH"])
    )
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return re.sub(r"[ \t]+$", "", done.stdout, flags=re.MULTILINE)


def without_lines(text: str) -> str:
    """What was printed, but for the lines at which shipped rules stand: those move."""
    return re.sub(r"(?<=\bstdlib/)(\w+\.tspec):\d+", r"\1", text)


@pytest.mark.parametrize(
    ("page", "long"),
    [
        *(pytest.param(each, False, id=each) for each in PAGES),
        pytest.param("testing.md", True, marks=EXHAUSTIVE, id="testing.md, all commands"),
    ],
)
def test_commands_print_what_the_page_says(
    page: str, long: bool, tmp_path: Path, request: Any
) -> None:
    (tmp_path / "runs").mkdir()
    record_loop(tmp_path / "runs" / "a", clears=False)
    record_loop(tmp_path / "runs" / "mended")
    record_ranks(tmp_path / "runs" / "killed", ends={1: "killed"}, forgets=0)
    text = (DOCS / page).read_text(encoding="utf-8")
    commands = 0
    for block in blocks(page):
        language, name, body = block.groups()
        if name and name not in ("bad", "good"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(body, encoding="utf-8")
        elif language == "console":
            commands += 1
            command, _, expected = body.removeprefix("$ ").partition("\n")
            if command.startswith(LONG) and not long:
                continue
            actual = printed(command, tmp_path)
            if request.config.getoption("--update-cases"):
                text = text.replace(block[0], f"```console\n$ {command}\n{actual}```")
            else:
                assert without_lines(actual) == without_lines(expected), command
    assert commands >= 2
    if request.config.getoption("--update-cases"):
        (DOCS / page).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_files_are_right(page: str, tmp_path: Path) -> None:
    for number, block in enumerate(blocks(page)):
        language, name, body = block.groups()
        folder = tmp_path / str(number)
        folder.mkdir()
        if language == "toml":
            table = "pyproject.toml" if "[tool.tspec" in body else "tspec.toml"
            (folder / table).write_text(body)
            assert bool(read(find(folder)).diagnostics) == (name == "bad"), body
        elif language == "tspec":
            assert format_file(parse(Source("a", body)).file) == body


def test_specs_load(tmp_path: Path) -> None:
    for block in blocks("ci.md"):
        if block[1] == "tspec":
            (tmp_path / Path(block[2]).name).write_text(block[3])
    loaded = load([tmp_path], project=tmp_path)
    assert [d.message for d in loaded.diagnostics] == []


def test_every_key_is_explained() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    for key in KEYS:
        assert re.search(rf"`{key}[`.]", text), key
    from tspec.config import model

    sections = {
        "check": model.CheckSection,
        "run": model.RunSection,
        "lint": model.LintSection,
        "fmt": model.FmtSection,
        "test": model.TestSection,
    }
    for name, section in sections.items():
        for field in section.__dataclass_fields__:
            assert f"`{name}.{field.replace('_', '-')}`" in text


def test_the_workflow_is_one_and_the_hooks_are_valid(tmp_path: Path) -> None:
    files = {block[2]: block[3] for block in blocks("ci.md") if block[1] == "yaml"}
    workflow = yaml.safe_load(files[".github/workflows/specs.yml"])
    # YAML reads the key `on` as a truth value.
    workflow["on"] = workflow.pop(True)
    jsonschema.Draft7Validator(published("github-workflow.json")).validate(workflow)
    config = tmp_path / ".pre-commit-config.yaml"
    config.write_text(files[".pre-commit-config.yaml"])
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-config", str(config)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    ours = {
        hook["id"]: hook
        for hook in yaml.safe_load((DOCS.parent / ".pre-commit-hooks.yaml").read_text())
    }
    for hook in yaml.safe_load(config.read_text())["repos"][0]["hooks"]:
        assert hook["entry"] == ours[hook["id"]]["entry"]
