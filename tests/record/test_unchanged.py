"""Recording changes nothing: parameters, buffers, losses and random state are bitwise those of a run without it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.families import EXHAUSTIVE
from tspec.trace.read import read_trace

JOBS = Path(__file__).with_name("jobs.py")


def run(*arguments: str | Path, recorded: Path | None = None) -> subprocess.CompletedProcess[str]:
    head = [sys.executable]
    if recorded is not None:
        head += ["-m", "tspec", "record", "-o", str(recorded), "--"]
    command = [*head, str(JOBS), *map(str, arguments)]
    done = subprocess.run(command, text=True, capture_output=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("mlp", 1),
        pytest.param("cnn", 1, marks=EXHAUSTIVE),
        pytest.param("gpt", 1, marks=EXHAUSTIVE),
        pytest.param("cnn", 2, marks=[pytest.mark.gloo, *EXHAUSTIVE]),
        pytest.param("mlp", 2, marks=[pytest.mark.gloo, *EXHAUSTIVE]),
        pytest.param("gpt", 2, marks=[pytest.mark.gloo, *EXHAUSTIVE]),
    ],
)
def test_bitwise_the_same_after_fifty_steps(name: str, ranks: int, tmp_path: Path) -> None:
    run(name, tmp_path / "plain", ranks)
    said = run(name, tmp_path / "recorded", ranks, recorded=tmp_path / "trace")
    assert "tspec:" not in said.stderr
    for rank in range(ranks):
        plain = torch.load(tmp_path / f"plain.{rank}")
        recorded = torch.load(tmp_path / f"recorded.{rank}")
        assert plain[0].keys() == recorded[0].keys()
        assert all(torch.equal(plain[0][key], recorded[0][key]) for key in plain[0])
        assert torch.equal(plain[1], recorded[1]) and torch.equal(plain[2], recorded[2])
    trace = read_trace(tmp_path / "trace")
    assert trace.world == ranks
    assert [stream.rank for stream in trace.streams] == list(range(ranks))
    for stream in trace.streams:
        assert stream.records[-1].context.step == 50
