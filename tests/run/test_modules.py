"""`-- -m package.module`: a module is run as `python -m` runs it, by `tspec run` and by `tspec record`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.families import EXHAUSTIVE
from tests.run.jobs import done
from tspec.trace.model import Begin
from tspec.trace.read import read_trace

TRAIN = """\
import multiprocessing
import sys

import torch

from .parts import WIDTH


def blend(parts, weight=0.5):
    return sum(part.norm() for part in parts) * weight


def train():
    model = torch.nn.Linear(WIDTH, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        blend([model(torch.ones(1, WIDTH))]).backward()
        optimizer.step()
    print("trained in", multiprocessing.current_process().name, flush=True)


if __name__ == "__main__":
    print(sys.argv, sys.path[0], __package__, __spec__.name, __file__, flush=True)
    if "spawn" in sys.argv:
        child = multiprocessing.get_context("spawn").Process(target=train, name="child")
        child.start()
        child.join()
    else:
        train()
    if "fail" in sys.argv:
        sys.exit("fatal")
"""
RULES = """\
edition 2026

module checks

use std.torch

/// A function of the module.
event blend = call package.train.blend {
  weight: float
}

/// The parts are weighted.
invariant parts_are_weighted {
  for c in calls(blend)
  expect c.weight < 0.1
  else warn
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import sys\nprint('package', sys.argv, flush=True)\n")
    (package / "__main__.py").write_text("print('main of', __package__, __spec__.name)\n")
    (package / "parts.py").write_text("WIDTH = 4\n")
    (package / "train.py").write_text(TRAIN)
    (tmp_path / "checks.tspec").write_text(RULES)
    return tmp_path


COMMANDS = {
    "run": ("-m", "tspec", "run", "checks.tspec", "--"),
    "record": ("-m", "tspec", "record", "-o", "trace", "--use", "checks.tspec", "--"),
}


@pytest.mark.parametrize(
    ("how", "command"),
    [
        *(("here", command) for command in COMMANDS),
        pytest.param("spawn", "record", marks=EXHAUSTIVE),
        pytest.param("spawn", "run", marks=EXHAUSTIVE),
    ],
)
def test_a_module_runs_as_it_would_alone(folder: Path, command: str, how: str) -> None:
    arguments = ("-m", "package.train", how, "-b", "--", "-o")
    alone = done(folder, *arguments)
    result = done(folder, *COMMANDS[command], *arguments)
    assert alone.returncode == result.returncode == 0, alone.stderr + result.stderr
    assert result.stdout.startswith(alone.stdout)
    assert f"trained in {'child' if how == 'spawn' else 'MainProcess'}" in result.stdout
    if command == "run":
        assert "violated 3 times" in result.stdout
        assert "c.weight = 0.5" in result.stdout
    else:
        [stream] = read_trace(folder / "trace").streams
        begun = [record for record in stream.records if isinstance(record, Begin)]
        assert len([call for call in begun if call.event == "optimizer.step"]) == 3
        assert len([call for call in begun if call.event == "blend"]) == 3


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_package_runs_its_main_module(folder: Path) -> None:
    alone = done(folder, "-m", "package")
    result = done(folder, *COMMANDS["run"], "-m", "package")
    assert result.returncode == 0, result.stderr
    assert "main of package package.__main__\n" in alone.stdout
    assert result.stdout.startswith(alone.stdout)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("-m",), 2, "the module is missing: `-- -m package.module ARGS...`"),
        (("-m", "nowhere"), 2, "there is no module nowhere"),
        (("-m", ".train"), 2, "there is no module .train"),
        (("-m", "package.nowhere"), 1, f"{sys.executable}: No module named package.nowhere\n"),
        (("-m", "package.train.py"), 1, "Try using 'package.train' instead"),
    ],
    ids=str,
)
def test_a_module_that_cannot_be_run_is_said(
    folder: Path, arguments: tuple[str, ...], status: int, said: str
) -> None:
    result = done(folder, *COMMANDS["run"], *arguments)
    assert result.returncode == status
    assert said in " ".join(result.stderr.split("\n│ ")), result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_text_that_a_script_leaves_with_is_printed_once(folder: Path, command: str) -> None:
    result = done(folder, *COMMANDS[command], "-m", "package.train", "fail")
    assert result.returncode == 1
    assert result.stderr.count("fatal") == 1, result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_without_torch_nothing_is_started(folder: Path, command: str) -> None:
    """An entry of None in `sys.modules` is how Python itself is told that a module is not there."""
    arguments = ["tspec", *COMMANDS[command][2:], "-m", "package.train"]
    code = (
        f"import sys; sys.modules['torch'] = None; sys.argv = {arguments!r}\n"
        "from tspec.cli.app import main; main()"
    )
    result = done(folder, "-c", code)
    assert result.returncode == 2
    assert result.stderr == "tspec: torch is not installed: pip install 'tspec-lang[torch]'\n"
    assert result.stdout == ""
