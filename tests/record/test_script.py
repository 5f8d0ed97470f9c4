"""Scripts run under recording as they run alone: output, arguments, status, and what torch holds afterwards."""

from __future__ import annotations

import builtins
import re
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import tspec
from tests.record.processes import SCRIPTS, python, recorded_anew
from tspec.trace.model import Begin, Finish, Sample
from tspec.trace.read import read_trace
from tspec.trace.sizes import in_words


@pytest.mark.slow
def test_unusual_scripts_print_what_they_print_alone(tmp_path: Path) -> None:
    script = SCRIPTS / "unusual.py"
    arguments = ("-a", "--b", "c d", "--", "-o")
    alone = python(script, *arguments)
    done = recorded_anew(tmp_path / "trace", script, *arguments)
    assert alone.returncode == done.returncode == 0, alone.stderr + done.stderr
    assert done.stdout == alone.stdout
    assert "Error" not in alone.stdout
    said = [line for line in done.stderr.splitlines() if line.startswith("tspec:")]
    assert said == ["tspec: Net is compiled: calls and tensors inside of it are not seen"]
    [stream] = read_trace(tmp_path / "trace").streams
    assert isinstance(stream.records[-1], Finish)


OWN = """\
edition 2026

module own

use std.torch

/// A function of the script.
event blend = call train.blend {
  weight: float
  parts: list<tensor>
  result_norm: float = result
}
"""
TRAIN = """\
import torch
from torch import nn


def blend(parts, weight=0.5):
    return sum(part.norm() for part in parts) * weight


model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    blend([model(torch.ones(1, 2)), torch.ones(2)], weight=0.25 * step).backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_a_function_of_the_user_is_an_event(tmp_path: Path) -> None:
    (tmp_path / "own.tspec").write_text(OWN)
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    done = recorded_anew(tmp_path / "trace", script, options=["--use", tmp_path / "own.tspec"])
    assert (done.returncode, done.stderr) == (0, "")
    [stream] = read_trace(tmp_path / "trace").streams
    calls = [r for r in stream.records if isinstance(r, Begin) and r.event == "blend"]
    assert [(call.context.step, call.fields["weight"]) for call in calls] == [
        (1, 0.0),
        (2, 0.25),
        (3, 0.5),
    ]
    assert [len(call.fields["parts"]) for call in calls] == [2, 2, 2]  # type: ignore[arg-type]


def test_what_was_recorded_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    done = python("-m", "tspec", "record", "-o", "runs/a", "--", "train.py", cwd=tmp_path)
    assert done.stdout == ""
    size = in_words(sum(path.stat().st_size for path in (tmp_path / "runs" / "a").iterdir()))
    assert done.stderr == f"recorded 3 steps, 1 rank, {size} to runs/a\n"


@pytest.mark.slow
def test_that_no_step_was_recorded_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('nothing to train')\n")
    done = python("-m", "tspec", "record", "-o", "a", "--", "train.py", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("recorded 0 steps, 1 rank, ")


@pytest.mark.slow
def test_that_a_script_failed_at_once_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit(3)\n")
    done = python("-m", "tspec", "record", "-o", "a", "--", "train.py", cwd=tmp_path)
    said = "recorded nothing: the script failed before there was anything to record\n"
    assert (done.returncode, done.stderr) == (3, said)


def test_a_script_without_dashes_before_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')\n")
    done = python("-m", "tspec", "record", "-o", "a", "train.py", "--seed", "1", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "write `--` before the script: `-- train.py`" in done.stderr
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_under_a_launcher_the_first_rank_says_what_was_recorded(tmp_path: Path) -> None:
    script = "import torch.distributed as dist\ndist.init_process_group('gloo')\n" + TRAIN
    (tmp_path / "train.py").write_text(script + "dist.barrier()\n")
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node=2")
    done = python(*launcher, "-m", "tspec", "record", "-o", "a", "--", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("recorded")]
    assert len(said) == 1
    assert re.fullmatch(r"recorded 3 steps, 2 ranks, [\d.]+ kB to a", said[0])


@pytest.mark.slow
def test_a_spec_with_errors_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "own.tspec").write_text(OWN.replace("float", "flaot"))
    script = tmp_path / "train.py"
    script.write_text("print('ran')\n")
    done = recorded_anew(tmp_path / "trace", script, options=["--use", tmp_path / "own.tspec"])
    assert done.returncode == 2
    assert "flaot" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def state_of_torch() -> dict[str, object]:
    """Everything that a recording could leave behind."""
    found: dict[str, object] = {
        "build_class": builtins.__build_class__,
        "importers": tuple(sys.meta_path),
        "builtins": tuple(sorted(vars(builtins))),
        "excepthook": sys.excepthook,
    }
    for module in (torch, functional, nn.init, torch.autograd, torch.distributed):
        for name, value in vars(module).items():
            if callable(value):
                found[f"{module.__name__}.{name}"] = (value, getattr(value, "__code__", None))
    for kind in (nn.Module, nn.Linear, torch.optim.Optimizer, torch.optim.SGD, torch.Tensor):
        for name, value in vars(kind).items():
            if callable(value):
                found[f"{kind.__name__}.{name}"] = (value, getattr(value, "__code__", None))
    return found


def test_everything_is_put_back_after_a_block(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    before = state_of_torch()
    for number in range(2):
        with tspec.record(tmp_path / f"trace{number}"):
            assert state_of_torch() != before
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    after = state_of_torch()
    assert {name for name in before if before[name] != after.get(name)} == set()
    assert before.keys() == after.keys()
    for number in range(2):
        [stream] = read_trace(tmp_path / f"trace{number}").streams
        # What was built before is seen too.
        held = {r.subject for r in stream.records if isinstance(r, Sample)}
        assert any(name.endswith("weight") for name in held)
        assert any(isinstance(r, Begin) and r.event == "optimizer.step" for r in stream.records)


def test_a_block_that_raises_is_recorded_and_put_back(tmp_path: Path) -> None:
    before = state_of_torch()
    try:
        with tspec.record(tmp_path / "trace"):
            model = nn.Linear(2, 2)
            model(torch.ones(1, 2)).sum().backward()
            model(torch.ones(1, 3))
    except RuntimeError as error:
        assert "cannot be multiplied" in str(error)
    assert before == state_of_torch()
    [stream] = read_trace(tmp_path / "trace").streams
    assert not isinstance(stream.records[-1], Finish)
    assert any(isinstance(r, Begin) and r.event == "backward" for r in stream.records)
