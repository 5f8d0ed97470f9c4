"""However the script's process ends, its findings are reported, and they agree with the counts."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.families import EXHAUSTIVE
from tests.run.jobs import CLEARED, done, job, left, reported, start, tspec_run, until
from tspec.run.child import ChildSettings
from tspec.runtime.sources import Sources


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return job(tmp_path, gradients_are_cleared=CLEARED)


@pytest.mark.parametrize(
    ("how", "status", "violated"),
    [
        ("leave", 0, 4),
        pytest.param("leave-3", 3, 3, marks=EXHAUSTIVE),
        pytest.param("segfault", 139, 3, marks=EXHAUSTIVE),
        ("killed", 137, 3),
        pytest.param("end", 0, 7, marks=EXHAUSTIVE),
    ],
)
def test_a_process_that_ends_at_once_is_reported(
    folder: Path, how: str, status: int, violated: int
) -> None:
    result = done(folder, *tspec_run(how))
    assert result.returncode == status, result.stderr
    [finding] = reported(folder)
    assert finding["rule"] == "checks.gradients_are_cleared"
    assert finding["violated"] == violated
    assert "1 rule: 1 violated, 0 held." in result.stdout
    decided = re.search(r"(\d+) instances, (\d+) decided", result.stdout)
    assert decided is not None
    assert int(decided[2]) >= violated
    assert left(folder, "*") == [folder / "cache" / "tspec" / "run", *left(folder, "lock")]


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=EXHAUSTIVE),
        pytest.param(signal.SIGHUP, marks=EXHAUSTIVE),
    ],
)
def test_a_signal_ends_the_script_and_the_report_comes(
    folder: Path, number: signal.Signals
) -> None:
    process = start(folder, *tspec_run("wait"))
    assert process.stdout is not None
    until(lambda: process.stdout is not None and process.stdout.readline().startswith("READY"))
    process.send_signal(number)
    said, errors = process.communicate(timeout=200)
    assert process.returncode == 128 + number, errors
    assert "1 rule: 1 violated, 0 held." in said
    assert reported(folder)[0]["violated"] == 3


@pytest.mark.slow
def test_killed_altogether_it_leaves_findings_on_disk_and_no_process(folder: Path) -> None:
    process = start(folder, *tspec_run("wait"))
    assert process.stdout is not None
    script = int(until(lambda: re.match(r"READY (\d+)", process.stdout.readline() or ""))[1])  # type: ignore[union-attr]
    process.kill()
    process.communicate(timeout=200)
    until(lambda: not Path(f"/proc/{script}").exists())
    [file] = left(folder)
    assert [json.loads(line)["step"] for line in file.read_text().splitlines()] == [2, 3, 4]
    counts = json.loads(file.with_suffix(".counts.json").read_text())["counts"]
    assert counts["checks.gradients_are_cleared"]["violated"] == 3
    # The next run removes what is left of others, but for findings that nobody has seen.
    assert done(folder, *tspec_run("clear")).returncode == 0
    assert left(folder) == [file]


@pytest.mark.slow
def test_a_killed_run_without_findings_is_cleared_away(folder: Path) -> None:
    process = start(folder, *tspec_run("wait", "clear"))
    assert process.stdout is not None
    until(lambda: process.stdout is not None and process.stdout.readline().startswith("READY"))
    process.kill()
    process.communicate(timeout=200)
    [file] = left(folder)
    until(lambda: done(folder, *tspec_run("clear")).returncode == 0 and not file.exists())


def test_the_script_runs_as_it_would_alone(folder: Path) -> None:
    (folder / "json.py").write_text("raise ImportError('of the folder in which it starts')")
    (folder / "sub").mkdir()
    script = folder / "sub" / "say.py"
    script.write_text(
        "import sys, signal, os\n"
        "print(sys.argv, sys.path[0], __name__, __file__)\n"
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, sys.flags.optimize)\n"
        "print('TSPEC_SIGNALS' in os.environ, sys.stdin.read())\n"
    )
    run = ["-O", "-m", "tspec", "run", str(folder / "checks.tspec"), "--", str(script), "a", "-b"]
    process = start(folder / "sub", *run)
    said, errors = process.communicate(timeout=300)
    lines = said.splitlines()
    assert process.returncode == 0, errors
    assert lines[0] == f"{[str(script), 'a', '-b']} {folder / 'sub'} __main__ {script}"
    assert lines[1:3] == ["True 1", "False "]


@pytest.mark.slow
def test_an_interrupt_of_the_whole_group_reaches_the_script_once(folder: Path) -> None:
    """As from a terminal, which interrupts all processes in the foreground."""
    (folder / "train.py").write_text(
        "import time, torch\n"
        "try:\n"
        "    print('READY', flush=True)\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    time.sleep(2)\n"
        "    print('saved', flush=True)\n"
    )
    process = start(folder, *tspec_run())
    assert process.stdout is not None
    assert process.stdout.readline() == "READY\n"
    [script] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(script), signal.SIGINT)
    os.kill(process.pid, signal.SIGINT)
    said, errors = process.communicate(timeout=200)
    assert said.startswith("saved\n"), errors
    assert process.returncode == 0


@pytest.mark.slow
def test_hooks_that_are_gone_are_said_without_a_traceback(folder: Path) -> None:
    given = folder / "job.json"
    ChildSettings(folder / "hooks.py", folder, ("train.py",), Sources(folder)).write(given)
    code = "import os; os.environ['TSPEC_SIGNALS'] = f'{os.getppid()}:2'\n"
    result = done(folder, "-c", code + "from tspec.run.child import main; main()", str(given))
    assert result.returncode == 2
    assert result.stderr.startswith("tspec: the run could not begin or end: FileNotFoundError: ")
    assert "Traceback" not in result.stderr
