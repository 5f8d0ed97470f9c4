"""Warnings that come from within watched calls name the file and line that they name without tspec."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.families import family

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import contextlib
import json
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        warnings.warn("in forward", stacklevel=2)
        warnings.warn("far above", stacklevel=4)
        return F.softmax(self.inner(x))


def helper(text):
    warnings.warn(text, DeprecationWarning, stacklevel=2)


def job():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    model(torch.ones(2, 4)).sum().backward()
    scheduler.step()
    optimizer.step()
    scheduler.step(3)
    helper("of the script")
    F.sigmoid(F.log_softmax(torch.ones(3)))
    F.tanh(F.gumbel_softmax(torch.ones(3), eps=1e-9))
    F.mse_loss(torch.ones(2, 1), torch.ones(2))
    F.l1_loss(torch.ones(2), torch.ones(2), size_average=True)
    F.interpolate(torch.ones(1, 1, 2), scale_factor=1.5, mode="linear", recompute_scale_factor=True)
    F.dropout2d(torch.ones(2, 2))
    nn.Softmax()(torch.ones(2, 2))
    list(DataLoader([torch.ones(1)] * 2, num_workers=0, pin_memory=True))
    DataLoader([1], num_workers=999)
    F.conv1d(torch.ones(1, 1, 8), torch.ones(1, 1, 4), padding="same")
    warnings.warn("no line", stacklevel=50)


seen = []


def show(message, category, filename, lineno, file=None, line=None):
    seen.append([category.__name__, str(message)[:60], filename, lineno])


def main(how, out):
    if how == "hooks":
        import hooks

        around = hooks.install()
    elif how == "block":
        import tspec

        around = tspec.record(out + ".trace")
    else:
        around = contextlib.nullcontext()
    with around:
        warnings.simplefilter("always")
        warnings.showwarning = show
        job()
        warnings.simplefilter("error")
        try:
            helper("as an error")
        except DeprecationWarning as error:
            trace = error.__traceback__
            names = []
            while trace is not None:
                names.append(trace.tb_frame.f_code.co_name)
                trace = trace.tb_next
            seen.append(["raised", str(error), names[0], 0])
    with open(out, "w") as file:
        json.dump(seen, file)


main(*sys.argv[1:])
"""
RULES = """edition 2026

module t

use std.torch

invariant finite_parameters {
  for p in parameters
  after optimizer.step
  expect finite(p.data)
  else warn
}

invariant softmax_along_a_dimension {
  for c in calls(dropout)
  expect c.p < 1
  else warn
}
"""


def run(folder: Path, *command: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warnings")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "rules.tspec").write_text(RULES)
    run(folder, "train.py", "plain", "plain.json")
    return folder


ONE = ("hooks", "block", "record", "run")
BOTH = ("record a block", "run hooks")
"""Two of these ways at once."""


@pytest.mark.parametrize("how", family((*ONE, *BOTH), {"hooks", "record"}, {"run hooks"}))
def test_warnings_name_the_same_lines(how: str, folder: Path) -> None:
    out = f"{how.replace(' ', '_')}.json"
    tspec = ("-m", "tspec")
    if "hooks" in how:
        run(folder, *tspec, "compile", "rules.tspec", "--target", "torch", "-o", "hooks.py")
        outer = (*tspec, "run", "rules.tspec", "--") if how == "run hooks" else ()
        run(folder, *outer, "train.py", "hooks", out)
    elif how == "block":
        run(folder, "train.py", "block", out)
    elif how == "run":
        run(folder, *tspec, "run", "rules.tspec", "--", "train.py", "plain", out)
    else:
        inner = "block" if how == "record a block" else "plain"
        run(folder, *tspec, "record", "-o", f"{out}.outer", "--", "train.py", inner, out)
    plain = json.loads((folder / "plain.json").read_text())
    found = json.loads((folder / out).read_text())
    assert found == plain
    lines = {message for _, message, file, _ in plain if file.endswith("train.py")}
    assert len(lines) >= 8 and any("lr_scheduler.step" in m[1] for m in plain)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["plain", "block"])
def test_warnings_that_are_errors(how: str, folder: Path) -> None:
    """What ends a run under `-W error` is shown at the script's line."""
    (folder / "fails.py").write_text(
        "import contextlib, sys, torch, tspec\n"
        "import torch.nn.functional as F\n"
        "import warnings\n"
        f"with (tspec.record('errors') if {how == 'block'} else contextlib.nullcontext()):\n"
        "    warnings.simplefilter('error')\n"
        "    F.softmax(torch.ones(3))\n"
    )
    done = subprocess.run(
        [sys.executable, "fails.py"], cwd=folder, text=True, capture_output=True, timeout=240
    )
    assert done.returncode == 1
    assert 'fails.py", line 6, in <module>' in done.stderr
    assert done.stderr.rstrip().splitlines()[-1].startswith("UserWarning: Implicit dimension")
