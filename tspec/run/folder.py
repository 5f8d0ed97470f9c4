"""The folder in which the processes of one job on one machine leave their findings.

Each rank that a launcher starts keeps a file locked there while it takes part; so does each process
that checks rules. The last to leave removes the folder, unless it holds unreported findings, or
state for the launcher's next attempt.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tspec.runtime.messages.folders import alone, is_held, locked, own_folder, private, write_json
from tspec.runtime.messages.launch import Launch, host, launcher_lives

PAUSE = 0.05
REPORTED = "reported"


@dataclass(frozen=True, slots=True)
class JobFolder:
    """A rank's place in the folder of its attempt."""

    path: Path
    """The folder of this attempt. The folders of earlier attempts lie beside it."""
    launch: Launch

    @property
    def own(self) -> Path:
        """The file that this rank keeps locked."""
        return self.path / f"rank-{self.launch.rank}.lock"

    @property
    def token(self) -> str:
        """A name that no other folder has, on any machine; empty where all ranks are on this one."""
        if not self.launch.nodes:
            return ""
        return (self.path / "token").read_text(encoding="ascii")

    @property
    def earlier(self) -> list[Path]:
        """The folders of the attempts before this one that are still there, in order."""
        found = [
            one for one in self.path.parent.glob("attempt-*") if _attempt(one) < self.launch.attempt
        ]
        return sorted(found, key=_attempt)

    def ended(self, status: int, stopped: bool) -> None:
        """This rank's script has ended with that status, or because a rule stopped it."""
        with suppress(OSError):
            write_json(self.own.with_suffix(".ended.json"), {"status": status, "stopped": stopped})

    def wait(self, patience: float) -> bool:
        """Wait until all other processes of the job here have written their findings; false if some
        have not.
        """
        return _until(patience, lambda: not any(map(self._works, self._locks())))

    def _works(self, lock: Path) -> bool:
        return not lock.with_suffix(".ended.json").exists() and is_held(lock)

    def _locks(self) -> list[Path]:
        locks = [*self.path.glob("*.lock"), *self.path.glob("*.jsonl")]
        return [one for one in locks if one != self.own]

    def wait_for_report(self, patience: float) -> None:
        """Wait until the first rank has reported, unless it is on another machine, or gone.

        It may not have started yet: ranks of an attempt start at different times.
        """
        first = self.path / "rank-0.lock"

        def over() -> bool:
            to_come = self.launch.first_is_here and not first.exists()
            return (self.path / REPORTED).exists() or not (to_come or is_held(first))

        _until(patience, over)

    @property
    def reporter_is_here(self) -> bool:
        """The first rank, which reports for all, is on this machine."""
        return self.launch.reports or (self.path / "job-0.json").exists()

    def reported(self) -> None:
        """Mark the findings as reported."""
        with suppress(OSError):
            (self.path / REPORTED).touch()

    def has_findings(self) -> bool:
        """True if some process has left a finding."""
        return _has_findings(self.path)


@contextmanager
def joined(launch: Launch) -> Iterator[JobFolder]:
    """Take part in a job. Raises OSError if the user's own folder cannot be used."""
    runs = own_folder("run")
    with alone(runs):
        _remove_stale(runs)
        if launch.job:
            job = private(runs / launch.job)
        else:
            job = Path(tempfile.mkdtemp(prefix=f"{host()}+{os.getpid()}+", dir=runs))
        found = JobFolder(private(job / f"attempt-{launch.attempt}"), launch)
        lock = locked(found.own)
        if not (found.path / "token").exists():
            (found.path / "token").write_text(secrets.token_hex(16), encoding="ascii")
    try:
        yield found
    finally:
        with alone(runs):
            lock.close()
            found.own.unlink(missing_ok=True)
            _leave(found)


def _leave(folder: JobFolder) -> None:
    """The last process of an attempt removes the folders that are no longer needed."""
    if any(map(is_held, folder.path.glob("*.lock"))):
        return
    kept = folder.has_findings() and not (folder.path / REPORTED).exists()
    if folder.launch.more and was_stopped(folder.path):
        return
    if not kept:
        shutil.rmtree(folder.path, ignore_errors=True)
    if not folder.launch.more:
        for attempt in folder.earlier:
            if (attempt / REPORTED).exists() or not _has_findings(attempt):
                shutil.rmtree(attempt, ignore_errors=True)
    with suppress(OSError):  # not empty
        folder.path.parent.rmdir()


def was_stopped(attempt: Path) -> bool:
    """True if a rule ended an attempt."""
    return any(
        json.loads(path.read_text(encoding="utf-8"))["stopped"]
        for path in attempt.glob("*.ended.json")
    )


def joins(folder: Path, launch: Launch) -> None:
    """Register this process as a rank of a launcher that was started within the run: its findings
    belong to that launcher's attempt.
    """
    if launch.job:
        own = folder / f"{os.getpid()}.launch.json"
        write_json(own, {"job": launch.job, "attempt": launch.attempt})


def stopped_before(folder: Path, launch: Launch) -> str:
    """The reason why a rule stopped an earlier attempt of this process's launcher within the run;
    else empty.
    """
    if not launch.attempt:
        return ""
    for path in folder.glob("*.launch.json"):
        rank = json.loads(path.read_text(encoding="utf-8"))
        counted = path.with_name(path.name.replace(".launch.", ".counts."))
        if rank["job"] == launch.job and rank["attempt"] < launch.attempt and counted.exists():
            stopped = json.loads(counted.read_text(encoding="utf-8"))["stopped"]
            if stopped:
                return not_run_again(stopped, rank["attempt"])
    return ""


def not_run_again(stopped: str, attempt: int) -> str:
    """Why an attempt does not run the script."""
    return f"the job was {stopped} in attempt {attempt}; it is not run again"


def _attempt(folder: Path) -> int:
    number = folder.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _has_findings(attempt: Path) -> bool:
    return any(path.stat().st_size for path in attempt.glob("*.jsonl"))


def _remove_stale(runs: Path) -> None:
    """Remove the folders of jobs without a live process, unless they hold findings that were not reported."""
    for job in runs.glob(f"{host()}+*"):
        attempts = list(job.glob("attempt-*"))
        if launcher_lives(job.name) or any(
            is_held(lock)
            for one in attempts
            for lock in (*one.glob("*.lock"), *one.glob("*.jsonl"))
        ):
            continue
        for attempt in attempts:
            if (attempt / REPORTED).exists() or not _has_findings(attempt):
                shutil.rmtree(attempt, ignore_errors=True)
        with suppress(OSError):
            job.rmdir()


def _until(patience: float, over: Callable[[], bool]) -> bool:
    until = time.monotonic() + patience
    while not over():
        if time.monotonic() > until:
            return False
        time.sleep(PAUSE)
    return True
