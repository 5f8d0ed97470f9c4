"""The commands, from the installed wheel and outside of the checkout, on a small training script."""

import json
from pathlib import Path

import pytest

from tests.cli.recordings import CLEARED
from tests.packaging.test_wheel import installed as installed
from tests.packaging.test_wheel import run
from tests.packaging.test_wheel import wheel as wheel

pytestmark = pytest.mark.xdist_group("installed")

SCRIPT = """\
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    if "--forget" not in sys.argv:
        optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.randn(16, 4)), torch.randint(2, (16,)))
    loss.backward()
    optimizer.step()
print("trained")
"""

RULES = (
    """\
edition 2026

module checks

use std.torch

"""
    + CLEARED
)


@pytest.fixture(scope="module")
def home(installed: Path) -> Path:
    (installed / "train.py").write_text(SCRIPT)
    (installed / "checks.tspec").write_text(RULES)
    return installed


def tspec(home: Path, *arguments: str):
    return run(home / "venv/bin/tspec", *arguments, cwd=home)


@pytest.mark.slow
def test_formatting_and_explaining(home: Path) -> None:
    assert tspec(home, "fmt", "--check", "checks.tspec").returncode == 0
    assert "TS0001" in tspec(home, "explain", "TS0001").stdout


@pytest.mark.slow
def test_recording_and_checking(home: Path) -> None:
    recorded = tspec(home, "record", "-o", "good", "--", "train.py")
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout == "trained\n"
    assert "steps" in tspec(home, "trace", "show", "good").stdout
    clean = tspec(home, "check", "checks.tspec", "specs/essentials", "--trace", "good")
    assert clean.returncode == 0, clean.stdout + clean.stderr
    assert tspec(home, "record", "-o", "bad", "--", "train.py", "--forget").returncode == 0
    found = tspec(home, "check", "checks.tspec", "--trace", "bad", "--output-format", "json")
    assert found.returncode == 1, found.stderr
    assert [finding["rule"] for finding in json.loads(found.stdout)] == [
        "checks.gradients_are_cleared"
    ]


def test_compiling(home: Path) -> None:
    compiled = tspec(home, "compile", "checks.tspec", "-o", "hooks.py")
    assert compiled.returncode == 0, compiled.stderr
    assert "checks.tspec:8" in (home / "hooks.py").read_text()
