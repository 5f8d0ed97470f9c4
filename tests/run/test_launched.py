"""Jobs of several ranks under torchrun: one report, on one node or two, and a stop is the end."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.families import family
from tests.run.jobs import (
    CLEARED,
    PATIENCE,
    SMALL,
    done,
    free_port,
    job,
    left,
    reported,
    start,
    torchrun,
    tspec_run,
)

pytestmark = pytest.mark.gloo


@pytest.mark.slow
def test_a_rank_that_is_killed_leaves_findings_and_counts_that_agree(tmp_path: Path) -> None:
    folder = job(tmp_path, gradients_are_cleared=CLEARED)
    result = done(folder, *torchrun(), *tspec_run("killed"), ON="1")
    assert result.returncode == 1
    [finding] = reported(folder)
    assert finding["ranks"] == [0, 1]
    counted = re.search(
        r"1 rule: 1 violated, 0 held. (\d+) instances, (\d+) decided", result.stdout
    )
    assert counted is not None, result.stdout
    assert int(counted[2]) >= finding["violated"] >= 6
    assert left(folder) == []


@pytest.mark.slow
def test_a_job_that_a_rule_stopped_is_not_started_again(tmp_path: Path) -> None:
    folder = job(tmp_path, gradients_are_small=SMALL + "else stop\n")
    result = done(folder, *torchrun("--max-restarts=2"), *tspec_run("poison"))
    assert result.returncode == 1
    assert result.stdout.count("begun 0") == 1, result.stderr
    assert result.stdout.count("1 rule: 1 violated, 0 held.") == 3
    again = "tspec: the job was stopped in step 4 by checks.gradients_are_small"
    assert len(re.findall(rf"{again} .* in attempt 0; it is not run again", result.stderr)) == 2
    assert "Connection" not in result.stderr
    assert "FileNotFoundError" not in result.stderr
    [finding] = reported(folder)
    assert finding["step"] == 4
    assert left(folder, "attempt-*") == []


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_job_of_a_launcher_within_the_run_is_not_started_again(tmp_path: Path) -> None:
    folder = job(tmp_path, gradients_are_small=SMALL + "else stop\n")
    script = torchrun("--max-restarts=1", "train.py", "poison")
    result = done(folder, *tspec_run(script=script))
    assert result.returncode == 1
    assert result.stdout.count("begun 0") == 1, result.stderr
    again = "tspec: the job was stopped in step 4 by checks.gradients_are_small"
    assert len(re.findall(rf"{again} .* in attempt 0; it is not run again", result.stderr)) == 1
    [finding] = reported(folder)
    assert finding["step"] == 4
    assert left(folder, "attempt-*") == []


@pytest.mark.slow
def test_a_stop_ends_ranks_that_no_longer_open_their_steps_together(tmp_path: Path) -> None:
    # The first rank comes late once, so that afterwards the other hears of the stop only in the next step:
    # it is in the job's own collective then, and waits for a rank that has to end.
    folder = job(tmp_path, gradients_are_small=SMALL + "else stop\n")
    result = done(folder, *torchrun(), *tspec_run("poison", "late"), TSPEC_TIMEOUT="2")
    assert result.returncode == 1
    assert "stopped in step 4" in result.stderr
    [finding] = reported(folder)
    assert finding["step"] == 4
    assert left(folder) == []


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_job_that_failed_otherwise_is_started_again(tmp_path: Path) -> None:
    folder = job(tmp_path, gradients_are_cleared=CLEARED)
    result = done(folder, *torchrun("--max-restarts=1", ranks=1), *tspec_run("leave-3"))
    assert result.stdout.count("begun 0") == 2, result.stderr
    assert "not run again" not in result.stderr
    assert left(folder, "attempt-*") == []


def nodes(folder: Path, *how: str) -> list[subprocess.CompletedProcess[str]]:
    """Two launchers that share no folder but the job's, each with two ranks."""
    port = free_port()
    started = []
    for node in range(2):
        place = folder / f"node-{node}"
        place.mkdir()
        for name in ("train.py", "checks.tspec"):
            (place / name).write_text((folder / name).read_text())
        options = ("--nnodes=2", f"--node-rank={node}", "--master-addr=127.0.0.1")
        command = [*torchrun(*options, f"--master-port={port}"), *tspec_run(*how)]
        started.append(start(place, *command, ON="2"))
    ended = []
    for process in started:
        try:
            said, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        ended.append(subprocess.CompletedProcess("", process.returncode, said, errors))
    return ended


@pytest.mark.parametrize("how", family(("destroy", "stay"), (), {"destroy"}))
def test_the_first_rank_reports_what_ranks_on_other_nodes_found(tmp_path: Path, how: str) -> None:
    folder = job(tmp_path, gradients_are_cleared=CLEARED)
    first, second = nodes(folder, how)
    assert "trained" in first.stdout + second.stdout, first.stderr + second.stderr
    [finding] = reported(folder / "node-0")
    assert finding["ranks"] == [0, 1, 2, 3]
    assert finding["violated"] == 28
    assert "28 instances" in first.stdout or "32 instances" in first.stdout, first.stdout
    assert not (folder / "node-1" / "report.json").exists()
    assert left(folder / "node-0") == []
    kept = left(folder / "node-1")
    assert len(kept) == 2
    assert f"what the ranks on this machine found is kept in {kept[0].parent}" in second.stderr


@pytest.mark.slow
def test_a_stop_ends_ranks_on_all_nodes_with_the_report(tmp_path: Path) -> None:
    folder = job(tmp_path, gradients_are_small=SMALL + "else stop\n")
    first, second = nodes(folder, "poison")
    assert (first.returncode, second.returncode) == (1, 1)
    assert "1 rule: 1 violated, 0 held." in first.stdout, first.stderr
    assert "stopped in step 4" in second.stderr


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_node_that_dies_is_said_and_not_waited_for_long(tmp_path: Path) -> None:
    folder = job(tmp_path, gradients_are_cleared=CLEARED)
    first, _ = nodes(folder, "killed")
    assert first.returncode == 1
    assert (folder / "node-0" / "report.json").exists(), first.stderr
    [finding] = reported(folder / "node-0")
    assert {0, 1} <= set(finding["ranks"])
    missed = r"what was found on ranks? 2(, 3)? did not come from another machine"
    assert re.search(missed, first.stderr), first.stderr
    assert len(left(folder / "node-1")) >= 1


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_note_is_said_by_one_rank(tmp_path: Path) -> None:
    folder = job(tmp_path, gradients_are_cleared=CLEARED)
    script = folder / "train.py"
    compiled = "wrapped = torch.compile(model, backend='eager')\noptimizer ="
    script.write_text(script.read_text().replace("optimizer =", compiled, 1))
    result = done(folder, *torchrun(), *tspec_run("clear"))
    assert result.stdout.count("trained") == 2, result.stderr
    assert result.stderr.count("Linear is compiled: calls and tensors inside of it") == 1
