"""Where a recording goes: what stands in the way is said before the job, and what happens later does not end it."""

from pathlib import Path

import pytest

import tspec
from tests.record.processes import python, recorded
from tspec.record import RecordingError
from tspec.trace.read import open_tables

SCRIPT = """\
import os, resource, sys
import torch

weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)
if "elsewhere" in sys.argv:
    os.chdir(sys.argv[-1])
for step in range(1, 9):
    optimizer.zero_grad()
    weight.sum().backward()
    optimizer.step()
    if step == 4 and "full" in sys.argv:
        held = os.path.getsize(sys.argv[-1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (held + 500, resource.RLIM_INFINITY))
print("trained")
sys.exit(7)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def foreign(folder: Path) -> Path:
    """A folder of another tool's, with a `meta.json` of its own."""
    folder.mkdir()
    (folder / "meta.json").write_text('{"images": 70000}')
    return folder


def test_a_folder_that_cannot_be_used_ends_before_training(script: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "run", foreign(tmp_path / "dataset")):
        done = recorded(out, script)
        assert (done.returncode, done.stdout) == (2, "")
        assert " ".join(done.stderr.split()).startswith(f"tspec: {out} cannot be recorded into: ")
    assert (tmp_path / "dataset" / "meta.json").read_text() == '{"images": 70000}'


@pytest.mark.slow
@pytest.mark.exhaustive
def test_keep_going_trains_without_a_recording(script: Path, tmp_path: Path) -> None:
    out = foreign(tmp_path / "dataset")
    done = recorded(out, script, options=["--keep-going"])
    assert (done.returncode, done.stdout) == (7, "trained\n")
    said = " ".join(done.stderr.split())
    assert "its meta.json is not of a recording, and would be overwritten" in said
    assert said.endswith("train.py runs without a recording")
    run = ["run", "std.hygiene", "--record", out, "--keep-going", "--", script]
    done = python("-m", "tspec", *run)
    assert done.returncode == 7, done.stderr
    assert "runs without a recording" in " ".join(done.stderr.split())
    assert "rules: 0 violated" in done.stdout
    assert [path.name for path in out.iterdir()] == ["meta.json"]
    assert (out / "meta.json").read_text() == '{"images": 70000}'


def test_code_that_records_itself_is_told_too(tmp_path: Path) -> None:
    out = foreign(tmp_path / "dataset")
    refused = pytest.raises(RecordingError, match=r"its meta\.json is not of a recording")
    with refused, tspec.record(out):
        pass
    assert (out / "meta.json").read_text() == '{"images": 70000}'


@pytest.mark.slow
def test_a_script_that_goes_elsewhere_is_recorded_where_it_was_said(
    script: Path, tmp_path: Path
) -> None:
    (tmp_path / "away").mkdir()
    command = ["-m", "tspec", "record", "-o", "run", "--", script, "elsewhere", tmp_path / "away"]
    done = python(*command, cwd=tmp_path)
    assert done.returncode == 7, done.stderr
    assert (tmp_path / "run" / "rank-0.arrow").exists()
    assert list((tmp_path / "away").iterdir()) == []


@pytest.mark.slow
def test_a_full_disk_ends_the_recording_and_not_the_job(script: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = recorded(out, script, "full", out / "rank-0.arrow")
    assert (done.returncode, done.stdout) == (7, "trained\n")
    [table] = open_tables(out).streams
    step = table.ending.step
    assert step is not None and step > 1
    assert done.stderr == (
        f"tspec: the recording of rank 0 ends in step {step}: file too large. The job goes on\n"
    )
    checked = python("-m", "tspec", "check", "std.hygiene", "--trace", out, "--require-complete")
    assert checked.returncode == 2
    assert f"rank 0: recording ends in step {step} " in checked.stdout
