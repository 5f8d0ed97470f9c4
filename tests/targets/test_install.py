"""What `install` of a generated module takes."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.runtime.training import module

ROOT = Path(__file__).resolve().parents[2]


def test_it_takes_options_of_the_checker_only() -> None:
    hooks = module("for p in parameters after optimizer.step expect finite(p.data)")
    assert [str(p) for p in inspect.signature(hooks.install).parameters.values()] == ["**options"]
    with pytest.raises(TypeError, match="model"):
        hooks.install(model=None)


def test_the_pages_show_it_so() -> None:
    for page in ("README.md", "docs/commands.md"):
        text = (ROOT / page).read_text()
        assert "with hooks.install():" in text and "install(model" not in text
