"""Fixtures for case files: text in, text out, in one file; `pytest --update-cases` writes what came out.

A case file begins with its input. Each line `=== title` begins an expected text, which lasts to
the next such line or the end of the file.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")  # a loaded machine is slow, and no test asserts a time

CaseCheck = Callable[[Path, dict[str, str]], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-cases", action="store_true", help="write what came out into the case files"
    )


def sections(text: str) -> dict[str, str]:
    """The parts of a case file by title; the input's title is empty."""
    parts: dict[str, list[str]] = {"": []}
    title = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("=== "):
            title = line.removeprefix("=== ").strip()
            parts[title] = []
        else:
            parts[title].append(line)
    return {title: "".join(lines) for title, lines in parts.items()}


@pytest.fixture
def case_input() -> Callable[[Path], str]:
    """The input of a case file."""
    return lambda path: sections(path.read_text(encoding="utf-8"))[""]


@pytest.fixture
def check_case(request: pytest.FixtureRequest) -> CaseCheck:
    """Compares texts by title with those of a case file, or writes them with `--update-cases`."""

    def check(path: Path, actual: dict[str, str]) -> None:
        before = path.read_text(encoding="utf-8")
        parts = sections(before)
        ended = {
            title: text if text.endswith("\n") else f"{text}\n" for title, text in actual.items()
        }
        if request.config.getoption("--update-cases"):
            after = parts[""] + "".join(f"=== {title}\n{text}" for title, text in ended.items())
            if after != before:
                path.write_text(after, encoding="utf-8")
            return
        assert {title: text for title, text in parts.items() if title} == ended

    return check


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> None:
    """A job that is followed in this process knows what is alive in it: earlier tests' models must be gone.

    What is still alive then, such as modules, is frozen: the next collection does not look at it again.
    """
    if request.path.relative_to(Path(__file__).parent).parts[0] in ("record", "rules", "runtime"):
        gc.collect()
        gc.freeze()


def pytest_unconfigure() -> None:
    """Libraries look at the end whether their objects are gone."""
    gc.unfreeze()
