"""A pipeline as reference of tensor-parallel ranks: each side by a command of its own, compared afterwards."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tspec.cli.app import app

HERE = Path(__file__).resolve().parent
PATIENCE = 400
"""Seconds; the machine may be busy."""


def run(spec: Path, folder: Path, *options: str) -> Result:
    words = ["run", str(spec), "--equivalence", "pipeline_is_tensor_parallel"]
    script = [str(HERE / "family.py"), "--tp", "{tp}", "--dp", "{dp}", "--pp", "{pp}"]
    return CliRunner().invoke(app, [*words, "--record", str(folder), *options, "--", *script])


def said(result: Result) -> str:
    """What went to stderr, as one line."""
    return " ".join(result.stderr.split())


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize("store", ("tensors", "sketches"))
def test_sides_that_are_run_by_themselves_are_compared_afterwards(
    store: str, tmp_path: Path
) -> None:
    text = (HERE / "family.tspec").read_text()
    if store == "sketches":
        text = text.replace("within rtol(1e-5)\n", "within rtol(1e-5)\n  store: sketch\n")
    folder, spec = tmp_path / "both", tmp_path / "generated.tspec"
    spec.write_text(text)
    printed = run(spec, folder, "--only", "reference", "--print-commands")
    assert printed.exit_code == 0, printed.output
    program, *words = shlex.split(printed.stdout)
    assert program == "torchrun"
    early = run(spec, folder, "--only", "candidate")
    assert early.exit_code == 2
    assert "has no recording of rank 0, 1: run `reference` first" in said(early)
    command = [sys.executable, "-m", "torch.distributed.run", *words]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    done = run(spec, folder, "--only", "candidate")
    assert (done.exit_code, done.stdout) == (0, f"candidate: recorded in {folder / 'candidate'}\n")
    again = run(spec, folder, "--only", "candidate")
    assert again.exit_code == 2
    assert "is there already" in said(again)
    found = run(spec, folder, "--only", "comparison")
    assert (found.exit_code, found.stdout) == (
        0,
        "checks.family.pipeline_is_tensor_parallel: 15 tensors compared, none differs\n",
    )
    recorded = tmp_path / "recorded.tspec"
    recorded.write_text(text.replace("generated(seed: 7)", 'recorded("both")'))
    other = run(recorded, tmp_path / "other")
    assert (other.exit_code, other.stdout) == (0, found.stdout)
    assert not (tmp_path / "other" / "reference").exists()
    refused = run(recorded, tmp_path / "third", "--only", "reference")
    assert refused.exit_code == 2
    assert f"the reference is recorded in {folder}" in said(refused)
