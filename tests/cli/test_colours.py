"""Commands colour severities on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm

SPEC = "edition 2026\n\nmodule checks\n\nuse std.torch\n\ninvariant small {\n  each step\n  expect loss < 10\n}\n"
FAILING = (
    '\ntest "nothing" {\n  events {\n    step 1 { backward }\n  }\n  violates small at step 1\n}\n'
)
RED, YELLOW = "\x1b[1;31merror[TS", "\x1b[1;33mwarning[TS"


def on_a_terminal(*arguments: str, **variables: str) -> str:
    """What a command writes to a terminal."""
    ours, its = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
    subprocess.run(
        [warm.folder() / "tspec", *arguments],
        env=environment | variables,
        stdout=its,
        stderr=its,
        timeout=200,
    )
    os.close(its)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    return text.decode()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.tspec").write_text(SPEC)
    (tmp_path / "loose.tspec").write_text(SPEC.replace("\n  each step", " each step"))
    (tmp_path / "tests.tspec").write_text(SPEC + FAILING)
    (tmp_path / "broken.tspec").write_text(SPEC.replace("expect", "expetc"))


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("lint", "small.tspec"), YELLOW),
        (("lint", "broken.tspec"), RED),
        (("fmt", "--check", "broken.tspec"), RED),
        (("compile", "broken.tspec", "-o", "hooks.py"), RED),
    ],
    ids=str,
)
def test_severities_have_colours_on_a_terminal(arguments: tuple[str, ...], shown: str) -> None:
    assert shown in on_a_terminal(*arguments)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (
            ("fmt", "--diff", "loose.tspec"),
            ["\x1b[31m-invariant", "\x1b[32m+  each step", "\x1b[36m@@"],
        ),
        (("explain", "optimizer.step"), ["\x1b[1moptimizer.step\x1b[0m"]),
        (("test", "tests.tspec"), ["\x1b[1;31m0 of 1 test passed, 1 failed\x1b[0m"]),
    ],
    ids=str,
)
def test_titles_patches_and_outcomes_have_colours(
    arguments: tuple[str, ...], shown: list[str]
) -> None:
    said = on_a_terminal(*arguments)
    assert [each for each in shown if each not in said] == [], said
    assert "\x1b" not in on_a_terminal(*arguments, NO_COLOR="1")


def test_without_a_terminal_or_with_no_color_there_is_none() -> None:
    assert "\x1b" not in on_a_terminal("lint", "small.tspec", NO_COLOR="1")
    piped = subprocess.run(
        [sys.executable, "-m", "tspec", "lint", "small.tspec"], capture_output=True, text=True
    )
    assert "warning[TS" in piped.stdout
    assert "\x1b" not in piped.stdout + piped.stderr
