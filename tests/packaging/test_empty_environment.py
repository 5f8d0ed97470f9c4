"""The wheel in an environment that had nothing, as a user installs it: the demo's commands work there."""

import json
import shutil
from pathlib import Path

import pytest

from tests.families import EXHAUSTIVE
from tests.packaging.test_wheel import CHECKOUT, run
from tests.packaging.test_wheel import wheel as wheel

pytestmark = [*EXHAUSTIVE, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("empty")
    assert run("python3", "-m", "venv", home / "venv", cwd=home).returncode == 0
    pip = (home / "venv/bin/python", "-m", "pip", "install", "-c", CHECKOUT / "constraints.txt")
    for wanted in ("torch==2.13.0", f"{wheel}[demo]"):
        done = run(*pip, wanted, cwd=home)
        assert done.returncode == 0, done.stderr
    shutil.copy(CHECKOUT / "docs/demo/digits.py", home / "digits.py")
    return home


def tspec(home: Path, *arguments: str, status: int = 0) -> str:
    result = run(home / "venv/bin/tspec", *arguments, cwd=home)
    assert result.returncode == status, f"{arguments}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def test_the_demo_s_commands(home: Path) -> None:
    short = ("digits.py", "--epochs", "1")
    tspec(home, "record", "-o", "runs/a", "--", *short)
    tspec(home, "record", "-o", "runs/b", "--", *short, "--seed", "1")
    assert "rank 0" in tspec(home, "trace", "show", "runs/a")
    tspec(home, "infer", "runs/a", "runs/b", "-o", "drafts.tspec")
    assert "draft invariant" in (home / "drafts.tspec").read_text()
    tspec(home, "fmt", "--check", "drafts.tspec")
    tspec(home, "compile", "specs/essentials", "drafts.tspec", "-o", "hooks.py")
    rules = ("specs/essentials", "drafts.tspec")
    tspec(home, "check", *rules, "--trace", "runs/a")
    tspec(home, "run", *rules, "--", *short, "--seed", "7")
    bug = ("--report", "found.json", "--fail-on", "warning", "--", *short, "--bug", "no-zero-grad")
    tspec(home, "run", *rules, *bug, status=1)
    found = json.loads((home / "found.json").read_text())
    # A draft sees it a step before the rule can be decided, and is folded under it.
    assert [finding["rule"] for finding in found] == ["std.hygiene.gradients_are_cleared"]
