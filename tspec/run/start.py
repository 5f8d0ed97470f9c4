"""Compile rules, run a script with them in a process of its own, and gather the findings of all its
processes.

The reporting process is not the one that runs the script: a script that calls `os._exit`, is
killed, or crashes in native code ends only itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tspec.check.verdicts import Verdicts
from tspec.record.destination import Destination
from tspec.resolve.program.rules import Program
from tspec.run.child import ChildSettings, RecordingSettings
from tspec.run.folder import JobFolder, joined, not_run_again, was_stopped
from tspec.run.gathered import Gathered, gathered
from tspec.run.supervise import supervised
from tspec.runtime.messages.launch import launched
from tspec.runtime.sources import Sources
from tspec.targets.compile import compile_program

CHILD = f"""\
import sys
sys.path[0] = {str(Path(__file__).resolve().parents[2])!r}
from tspec.run.child import main
main()
"""
"""The command of the script's process. It imports nothing from its working folder."""
PATIENCE = 20.0
"""Seconds that ranks wait for one another at the end of a job that ended normally or by a rule."""
BRIEF = 5.0
"""Seconds that tspec waits for a failed job: its remaining processes may hang."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The end of a script, and the verdicts of its rules."""

    status: int
    """The script's own exit status; 128 and the signal's number if a signal ended it."""
    stopped: str
    """The rule that ended it, and when; else empty."""
    verdicts: Verdicts
    """Violated instances about which something was due."""
    counts: Mapping[str, Mapping[str, int]]
    """Rule -> verdict -> the number of its instances, over all ranks."""
    reasons: Mapping[str, Mapping[str, int]]
    """Rule -> why instances are idle or unknown -> their number, over all ranks."""
    tells: bool = True
    """True if this process reports. Under a launcher, the first rank reports for all."""
    again: str = ""
    """Why the script was not run: a rule stopped the job in an earlier attempt of the launcher."""
    left: Path | None = None
    """The folder of the findings of this machine's ranks, if another machine reports."""


@contextmanager
def running(
    program: Program,
    command: Sequence[str],
    given: Mapping[str, object] | None = None,
    record: Destination | None = None,
    sources: Sources | None = None,
    check_steps: str = "",
) -> Iterator[RunResult]:
    """Run `script.py ARGS` or `-m module ARGS` as Python would, with the rules of a program checked
    in it.

    The findings are to be reported within the block: their files are removed at its end. With
    `record`, the run is recorded there too. `sources` names files; by default, names are relative
    to the working folder. `check_steps` are the steps in which rules
    are checked (`tspec.schedule`); empty for all. Raises CannotCompile for rules without code, OSError if there is no
    folder of the user's own.
    """
    launch, sources = launched(), sources or Sources(Path.cwd())
    text = compile_program(program, target="torch", given=given, root=sources.root)
    with joined(launch) as folder, ExitStack() as stack:
        # Later attempts end for the same reason, and have found nothing.
        stopped = next((one for one in folder.earlier if was_stopped(one)), None)
        status = 1
        if stopped is None:
            said = "" if sources.redacted else " ".join(command)
            recorded = None if record is None else _recorded(record, program, said)
            job = _written(text, folder, tuple(command), sources, recorded, check_steps)
            ended = stack.enter_context(supervised(("-c", CHILD, str(job))))
            status = ended if ended >= 0 else 128 - ended
        found = gathered(stopped or folder.path)
        ended_by_rule = bool(status and found.stopped)
        folder.ended(status, ended_by_rule)
        if launch.reports:
            folder.wait(PATIENCE if ended_by_rule or not status else BRIEF)
            found = gathered(stopped or folder.path)
        elif ended_by_rule:
            folder.wait_for_report(PATIENCE)
        yield _result(status, found, folder, stopped)
        if launch.reports:
            folder.reported()


def _result(status: int, found: Gathered, folder: JobFolder, stopped: Path | None) -> RunResult:
    again, left = "", None
    if stopped is not None:
        again = not_run_again(found.stopped, int(stopped.name.rpartition("-")[2]))
    if not folder.reporter_is_here and folder.has_findings():
        left = folder.path
    tells = folder.launch.reports
    return RunResult(
        status, found.stopped, found.verdicts, found.counts, found.reasons, tells, again, left
    )


def _recorded(to: Destination, program: Program, command: str) -> RecordingSettings:
    """The recording beside the rules: the standard contents of a recording, and the values that
    these rules read.
    """
    from tspec.record.joined import joined
    from tspec.record.specs import vocabulary
    from tspec.record.watch import watch_spec

    own = watch_spec(program.vocabulary, families=())
    return RecordingSettings(to, joined(watch_spec(vocabulary(())), own), command)


def _written(
    hooks: str,
    folder: JobFolder,
    command: tuple[str, ...],
    sources: Sources,
    recorded: RecordingSettings | None,
    check_steps: str,
) -> Path:
    """The settings of the script's process as a file; the hooks are one too, which tracebacks and
    debuggers show.
    """
    rank = folder.launch.rank
    code = folder.path / f"hooks-{rank}.py"
    code.write_text(hooks, encoding="utf-8")
    job = folder.path / f"job-{rank}.json"
    settings = ChildSettings(
        code, folder.path, command, sources, recorded, folder.token, check_steps
    )
    settings.write(job)
    return job
