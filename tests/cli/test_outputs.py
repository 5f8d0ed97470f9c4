"""Files that a command is to write or to trust: looked at before it begins, and nothing lost if they fail."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests import warm
from tests.cli.recordings import record_loop
from tspec import files
from tspec.cli.app import app

CASE = Path(__file__).parents[1] / "cases" / "outputs" / "refused.case"
WIDTH = 80
RULES = """edition 2026

module checks

use std.torch

invariant gradients_are_cleared {
  each step
  when step > 1
  expect contains optimizer.zero_grad
  else warn
}

test "a step without" {
  events {
    step 1 { backward, optimizer.step }
    step 2 { backward, optimizer.step }
  }
  violates gradients_are_cleared at step 2
}
"""
BASELINES = {
    "unfinished.json": b'{"version": 1,',
    "binary.json": b"\xff\xfe\x00",
    "list.json": b"[]",
    "later.json": b'{"version": 9, "findings": []}',
    "lacking.json": b'{"version": 1}',
    "numbers.json": b'{"version": 1, "findings": [{"command": "check", "file": 3}]}',
    "deep.json": b"[" * 100_000,
}
SCRIPT = """import pathlib
pathlib.Path("trained").touch()
"""


def tspec(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: rules, a script, a recording with one finding, and files that are in the way."""
    record_loop(tmp_path / "faulty", clears=False)
    (tmp_path / "checks.tspec").write_text(RULES)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "a_file").write_text("")
    (tmp_path / "a_folder").mkdir()
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / "meta.json").write_text('{"images": 70000}')
    (tmp_path / "recorded").mkdir()
    (tmp_path / "recorded" / "rank-0.arrow").write_bytes(b"")
    for name, content in BASELINES.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("WORLD_SIZE", "1")
    return tmp_path


def test_what_cannot_be_used_is_refused_before_anything_begins(
    folder: Path,
    case_input: Callable[[Path], str],
    check_case: Callable[[Path, dict[str, str]], None],
) -> None:
    before = sorted(folder.rglob("*"))
    said = {}
    for command in case_input(CASE).splitlines():
        words = shlex.split(command.removeprefix("$ tspec "))
        done = tspec(*words)
        assert done.exit_code == 2, command
        assert done.stdout == ""
        said[shlex.join(words)] = done.stderr
        if "Usage:" not in done.stderr:
            assert max(map(len, done.stderr.splitlines())) <= WIDTH
    assert sorted(folder.rglob("*")) == before
    check_case(CASE, said)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(folder: Path) -> None:
    (folder / "a_folder").chmod(0o500)
    done = tspec("check", "checks.tspec", "--trace", "faulty", "--report", "a_folder/r.json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "the report a_folder/r.json cannot be written: permission denied" in done.stderr


def with_full_disk(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`tspec ARGUMENTS` where a file can be made, and not a byte be written to it."""
    program = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (0, 0)); "
    program += "from tspec.cli.app import main; main()"
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize("kind", ["json", "text"])
def test_a_report_that_cannot_be_written_goes_to_the_terminal(folder: Path, kind: str) -> None:
    (folder / "r.json").write_text("old")
    before = sorted(folder.iterdir())
    check = ("check", "checks.tspec", "--trace", "faulty", "--report", "r.json")
    done = with_full_disk(*check, "--output-format", kind)
    assert done.returncode == 1, done.stderr
    first, _, rest = done.stderr.partition("\n")
    assert first == "tspec: the report r.json cannot be written: file too large; it follows"
    [finding], _ = json.JSONDecoder().raw_decode(rest)
    assert finding["rule"] == "checks.gradients_are_cleared"
    assert "gradients_are_cleared" in done.stdout
    assert (folder / "r.json").read_text() == "old"
    assert sorted(folder.iterdir()) == before


def test_several_reports_are_written_each_in_its_format(folder: Path) -> None:
    result = tspec(
        "check", "checks.tspec", "--trace", "faulty", "--report", "r.json", "--report", "r.html"
    )
    assert result.exit_code == 1
    [found] = json.loads((folder / "r.json").read_text())
    assert found["rule"] == "checks.gradients_are_cleared"
    assert "checks.gradients_are_cleared" in (folder / "r.html").read_text()


def test_a_baseline_that_cannot_be_written_accepts_nothing_new(folder: Path) -> None:
    empty = '{"version": 1, "findings": []}'
    (folder / "b.json").write_text(empty)
    done = with_full_disk(
        "check", "checks.tspec", "--trace", "faulty", "--baseline", "b.json", "--update-baseline"
    )
    assert done.returncode == 1, done.stderr
    assert "warning: checks.gradients_are_cleared" in done.stdout
    assert done.stderr == (
        "tspec: the baseline b.json cannot be written: file too large; it accepts what it\n"
        "  did before\n"
    )
    assert (folder / "b.json").read_text() == empty


def test_a_folder_that_a_script_removes_loses_no_finding(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "train.py").write_text(
        "import os, pathlib, torch\n"
        "weight = torch.nn.Parameter(torch.ones(3))\n"
        "optimizer = torch.optim.SGD([weight], lr=0.1)\n"
        "for _ in range(3):\n"
        "    weight.sum().backward()\n"
        "    optimizer.step()\n"
        "os.rmdir('out')\n"
        "pathlib.Path('out').touch()\n"
        "os.chdir('a_folder')\n"
    )
    command = ("run", "checks.tspec", "--report", "out/r.json", "--", "train.py")
    done = warm.run(*command, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr
    assert "tspec: the report out/r.json cannot be written: " in done.stderr
    assert '"rule": "checks.gradients_are_cleared"' in done.stderr
    assert "warning: checks.gradients_are_cleared" in done.stdout


def test_a_file_is_replaced_as_a_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    real = tmp_path / "real.json"
    real.write_text("old")
    real.chmod(0o640)
    (tmp_path / "link.json").symlink_to(real)
    files.write(tmp_path / "link.json", "new \udc80")
    assert (tmp_path / "link.json").is_symlink()
    assert real.read_text() == "new \\udc80"
    assert real.stat().st_mode & 0o777 == 0o640
    files.write(Path("/dev/null"), "gone")
    assert Path("/dev/null").is_char_device()
    assert files.obstacle(Path("/dev/null")) is None
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.json", "real.json"]


def test_a_name_that_is_too_long_is_said(tmp_path: Path) -> None:
    assert files.obstacle(tmp_path / ("a" * 300)) == "file name too long"
    assert files.obstacle(tmp_path / ("a" * 300) / "b") == "file name too long"
