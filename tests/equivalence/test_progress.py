"""A run in which ranks wait for each other is ended, and it is said where each of them is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tspec.equivalence.child import Given
from tspec.equivalence.launch import Failed, SideRun, launch
from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.progress import Progress, changes, standing

HERE = Path(__file__).resolve().parent
WAITING = """
import sys, threading
from pathlib import Path
sys.path[0] = {root!r}
from tspec.equivalence.progress import Progress, showing_its_stack
folder = Path({folder!r})
with showing_its_stack(folder, 1):
    Progress(folder, 1).reached("outputs fc, step 2")
    threading.Event().wait()
"""


def test_a_rank_is_where_it_was_last_with_the_line_of_the_script(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text(WAITING.format(root=str(HERE.parents[1]), folder=str(tmp_path)))
    process = subprocess.Popen([sys.executable, str(script)])
    try:
        # The stack is written on a signal, which a busy machine delivers late.
        while "waits.py" not in (found := list(standing(tmp_path, 2)))[1][1]:
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    at = len(WAITING.splitlines())
    assert found == [
        (0, "recorded nothing"),
        (1, f"last at outputs fc, step 2, in wait at waits.py:{at}"),
    ]


def test_a_rank_that_comes_further_is_seen(tmp_path: Path) -> None:
    progress = Progress(tmp_path, 0)
    progress.reached("outputs fc, step 1")
    before = changes(tmp_path, 1)
    time.sleep(0.02)
    progress.reached("x")
    assert changes(tmp_path, 1) != before
    file = tmp_path / "rank-0.progress"
    assert file.read_text().rstrip() == f"{os.getpid()} x"
    progress.close()


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_a_run_in_which_a_rank_joins_no_collective_is_ended(tmp_path: Path) -> None:
    run = SideRun("candidate", Given((str(HERE / "stalled.py"),), Orders(3, ("outputs",))), 2)
    with pytest.raises(Failed, match="no rank came further for 5 s") as found:
        launch(run, tmp_path, stalled=5)
    said = found.value.said.splitlines()
    at = "last at losses loss, step 2, micro-batch 1, in"
    lines = (HERE / "stalled.py").read_text().splitlines()
    reduces, waits = (
        next(number for number, line in enumerate(lines, 1) if text in line)
        for text in ("all_reduce", "never.wait")
    )
    assert said[0] == f"  rank 0: {at} all_reduce at stalled.py:{reduces}"
    assert said[1] == f"  rank 1: {at} wait at stalled.py:{waits}"


@pytest.mark.slow
def test_of_a_long_traceback_the_exception_is_shown(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    calls = "\n".join(f"def f{n}():\n    f{n - 1}()" for n in range(1, 40))
    script.write_text(f"def f0():\n    raise ValueError('the cause')\n{calls}\nf39()\n")
    run = SideRun("reference", Given((str(script),), Orders(1, ("losses",))), 1)
    with pytest.raises(Failed) as found:
        launch(run, tmp_path)
    lines = found.value.said.splitlines()
    assert "Traceback" in lines[0]
    assert lines[1].endswith(" more lines")
    assert lines[-1] == "ValueError: the cause"
    assert "    f1()" in lines
