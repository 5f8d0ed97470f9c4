"""Compile rules, run a script with them, and gather what every process of it found."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tspec.check.verdicts import Decided, Instance, Verdicts
from tspec.resolve.rules import Program
from tspec.run.child import Recorded
from tspec.targets.compile import compile_program

FOLDER = "TSPEC_RUN"
"""Environment variable: the folder in which a job's processes leave what they found."""
PATIENCE = 20.0
"""Seconds for which the first rank waits, at the end, for what the others have found."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a script ended, and what its rules came to."""

    status: int
    """The script's own exit status."""
    stopped: str
    """The rule that ended it, and when; else empty."""
    verdicts: Verdicts
    """Violated instances about which something was due."""
    counts: Mapping[str, Mapping[str, int]]
    """Rule -> how many of its instances came to each verdict, over all ranks."""
    tells: bool = True
    """Whether this process reports; under a launcher, the first rank does for all."""


def run(
    program: Program,
    script: str,
    args: Sequence[str],
    given: Mapping[str, object] | None = None,
    record: Path | None = None,
) -> Ran:
    """Run a script as `python script.py ARGS` would, with the rules of a program checked in it.

    `record` is a folder into which the run is recorded too. Raises CannotCompile for rules without
    code, OSError if there is no such script, TraceError if the folder holds a recording already.
    """
    text = compile_program(program, target="torch", given=given)
    with _folder() as folder:
        hooks = _written(text, folder)
        recorded = None if record is None else _recorded(record, program, (script, *args))
        status = _run(hooks, folder, (script, *args), recorded)
        if not _tells():
            if status:
                _wait(folder)
            return Ran(status, "", Verdicts(()), {}, tells=False)
        if _launched():
            # A launcher ends all ranks as soon as one has failed, and this one has yet to tell.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _wait(folder)
        return _gathered(folder, status)


@contextmanager
def _folder() -> Iterator[Path]:
    """One folder for all processes of the job on this machine, also of ranks that a launcher started."""
    launched = _launched()
    if launched:
        folder = Path(tempfile.gettempdir()) / f"tspec-run-{os.getuid()}-{launched}"
        folder.mkdir(exist_ok=True)
    else:
        folder = Path(tempfile.mkdtemp(prefix="tspec-run-"))
    try:
        yield folder
    finally:
        if _tells():
            shutil.rmtree(folder, ignore_errors=True)


def _launched() -> str:
    """What tells a job of torchrun from others on this machine; empty without one."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        return ""
    names = ("TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")
    parts = [os.environ.get(name, "") for name in names] + [str(os.getppid())]
    return "-".join(part for part in parts if part.isalnum())


def _tells() -> bool:
    return not _launched() or os.environ.get("RANK") == "0"


def _written(text: str, folder: Path) -> Path:
    """The hooks as a file, so that tracebacks and debuggers show them. Ranks write the same text."""
    path = folder / "hooks.py"
    scratch = folder / f"hooks-{os.getpid()}.py"
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)
    return path


def _recorded(out: Path, program: Program, command: Sequence[str]) -> Recorded:
    """What is recorded beside the rules: all that every recording holds, and what these rules speak of."""
    from tspec.record.joined import joined
    from tspec.record.specs import vocabulary
    from tspec.record.watch import watch_spec

    own = watch_spec(program.vocabulary, families=())
    return Recorded(out.resolve(), joined(watch_spec(vocabulary(())), own), " ".join(command))


def _run(hooks: Path, folder: Path, command: Sequence[str], recorded: Recorded | None) -> int:
    from tspec.run.child import followed
    from tspec.runtime.live.follow import Ending, children_start
    from tspec.runtime.live.script import run_script

    job, close = followed(hooks, folder, recorded)
    argument = folder / "job.pickle"
    argument.write_bytes(pickle.dumps((str(hooks), str(folder), recorded)))
    script, *args = command
    with _begun(recorded), children_start("tspec.run.child", "join", str(argument)):
        ending = Ending(job, close)
        ending.arm()
        try:
            return run_script(script, args, job)
        finally:
            close()
            ending.disarm()


def _begun(recorded: Recorded | None) -> AbstractContextManager[None]:
    if recorded is None:
        return nullcontext()
    from tspec.record.start import begins_now

    return begins_now()


def _wait(folder: Path) -> None:
    """Under a launcher other ranks may still be ending: wait until each has left what it counted."""
    world = int(os.environ["WORLD_SIZE"]) if _launched() else 1
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and folder.exists():
        if len(list(folder.glob("*.counts.json"))) >= world:
            return
        time.sleep(0.05)


def _gathered(folder: Path, status: int) -> Ran:
    counts: dict[str, dict[str, int]] = {}
    notes: list[str] = []
    stopped = ""
    for path in sorted(folder.glob("*.counts.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        for rule, mine in found["counts"].items():
            total = counts.setdefault(rule, dict.fromkeys(mine, 0))
            for verdict, number in mine.items():
                total[verdict] += number
        notes += [f"rank {found['rank']}: {fault}" for fault in found["faults"]]
        stopped = stopped or found["stopped"]
    decided = [
        _decided(json.loads(line))
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.endswith("}")
    ]
    decided.sort(key=lambda one: (one.step, one.instance))
    silent = [rule for rule, found in counts.items() if not sum(found.values())]
    verdicts = Verdicts(tuple(decided), tuple(silent), tuple(dict.fromkeys(notes)))
    return Ran(status, stopped, verdicts, counts)


def _decided(found: Mapping[str, Any]) -> Decided:
    step, place = found["at"]
    instance = Instance(
        found["rule"], tuple(found["ranks"]), (step, place), tuple(found["subjects"])
    )
    return Decided(instance, "violated", found["reason"], found["values"], found["step"])
