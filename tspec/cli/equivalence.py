"""`tspec run SPECS… --equivalence NAME -- script.py ARGS…`: whether two ways to run a step agree."""

from __future__ import annotations

import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from tspec.cli.output import (
    FAULT,
    FOUND,
    FOUND_NOTHING,
    Format,
    Output,
    accepted,
    write_file,
    write_out,
)
from tspec.cli.say import BadParameter, say, warn
from tspec.cli.specs import refuse, specs_of

if TYPE_CHECKING:
    from tspec.equivalence.launch import Failed
    from tspec.equivalence.runs import Launch
    from tspec.equivalence.verdicts import TrialFolders, Verdict
    from tspec.resolve.program.trials import EquivalenceDeclaration


ABOUT_RULES = (
    "given",
    "accepted_only",
    "fail_on",
    "require_instances",
    "check_steps",
    "max_trace_size",
    "keep_going",
    "redact",
    "verbose",
)
"""Options that a comparison of two runs does not use."""


def refuse_rule_options(ctx: typer.Context) -> None:
    """Refuse options that concern rules."""
    for each in ctx.command.params:
        source = ctx.get_parameter_source(each.name) if each.name in ABOUT_RULES else None
        if source is not None and source.name == "COMMANDLINE":
            raise BadParameter(
                "it is about rules, not about an equivalence", param_hint=each.opts[0]
            )


class Part(StrEnum):
    """The part of an equivalence to run, if not all."""

    REFERENCE = "reference"
    CANDIDATE = "candidate"
    COMPARISON = "comparison"


EquivalenceOption = Annotated[
    str | None,
    typer.Option(
        "--equivalence",
        metavar="NAME",
        help="Run both sides of an equivalence and compare them, instead of checking rules.",
    ),
]

OnlyOption = Annotated[
    Part | None,
    typer.Option(
        "--only",
        help="Do one part of an equivalence, in the folder of --record: run one side, or compare.",
    ),
]

PrintCommandsOption = Annotated[
    bool,
    typer.Option(
        "--print-commands",
        help="With --only of a side, print the commands for a scheduler instead of running them.",
    ),
]

DrillOption = Annotated[
    bool,
    typer.Option(
        "--drill",
        help="For an equivalence with `store: sketch`: run both sides again, record the first wrong tensors in full, and compare these exactly.",
    ),
]

StallTimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--stall-timeout",
        metavar="SECONDS",
        min=0.1,
        help="End a run of an equivalence in which no rank makes progress for SECONDS.",
        show_default="600",
    ),
]


class Dropout(StrEnum):
    """What becomes of dropout in both sides of an equivalence."""

    OFF = "off"
    SCRIPT = "script"


DropoutOption = Annotated[
    Dropout | None,
    typer.Option(
        "--dropout",
        help="Dropout of both sides of an equivalence: switched off, or as the script draws it.",
        show_default="off",
    ),
]


@dataclass(frozen=True, slots=True)
class EquivalenceOptions:
    """Options of a run of both sides of an equivalence."""

    equivalence: EquivalenceOption = None
    only: OnlyOption = None
    print_commands: PrintCommandsOption = False
    drill: DrillOption = False
    stall_timeout: StallTimeoutOption = None
    dropout: DropoutOption = None

    def refuse_alone(self) -> None:
        """Raises BadParameter if an option of equivalences is given without --equivalence."""
        for asked, option in (
            (self.only, "--only"),
            (self.print_commands, "--print-commands"),
            (self.drill, "--drill"),
            (self.stall_timeout, "--stall-timeout"),
            (self.dropout, "--dropout"),
        ):
            if asked:
                says = "it is about an equivalence: add --equivalence NAME"
                raise BadParameter(says, param_hint=option)


def check(
    name: str,
    asked: EquivalenceOptions,
    specs: list[Path] | None,
    command: Sequence[str],
    keep: Path | None,
    output: Output,
) -> NoReturn:
    """Run the reference and the candidate, compare, report, and exit with 0, 1 or 2.

    The recordings stay in the folder `keep` if it is given. With `--only`, the recordings that are
    already in the folder are used.
    """
    from tspec.equivalence.launch import launch
    from tspec.equivalence.progress import STALLED
    from tspec.equivalence.refused import NotExecuted
    from tspec.equivalence.sides import trials_of
    from tspec.equivalence.verdicts import compared, places, verdicts
    from tspec.resolve.program.trials import Recorded

    only = asked.only
    if only is not None and keep is None:
        raise BadParameter("name the folder of both sides with --record", param_hint="--only")
    if asked.print_commands and only not in (Part.REFERENCE, Part.CANDIDATE):
        says = "it is about one side: add --only reference, or --only candidate"
        raise BadParameter(says, param_hint="--print-commands")
    declaration = _chosen(name, specs, output)
    if asked.drill and (only is not None or not declaration.sketched):
        says = f"`{name}` keeps all tensors: it is for equivalences with `store: sketch`"
        again = "it runs both sides again: leave --only out"
        raise BadParameter(says if only is None else again, param_hint="--drill")
    if asked.drill and isinstance(declaration.origin, Recorded):
        says = f"the reference of `{name}` is recorded, and it is run again"
        raise BadParameter(says, param_hint="--drill")
    stalled = asked.stall_timeout or STALLED
    start = partial(launch, stalled=stalled)
    try:
        trials = trials_of(declaration, command, drops=asked.dropout is Dropout.SCRIPT)
        with _folder(keep, only in (None, Part.REFERENCE)) as folder, _ends_on_signals():
            found = places(trials, folder)
            if only in (Part.REFERENCE, Part.CANDIDATE):
                watched = stalled if asked.print_commands else None
                raise typer.Exit(_one_side(found, only, start, watched))
            judged = compared(found) if only else verdicts(found, asked.drill, start)
            told = list(_told(judged, output))
    except (NotExecuted, ValueError) as why:
        warn(f"`{name}` cannot be run: {why}")
        raise typer.Exit(FAULT) from None
    raise typer.Exit(_report(told, declaration, output))


def _one_side(
    found: Iterable[TrialFolders], only: Part, start: Launch, stalled: float | None
) -> int:
    """Run one side; with `stalled` print the commands that do, whose processes watch one another.

    The exit status.
    """
    from tspec.equivalence.launch import Failed, prepared
    from tspec.equivalence.verdicts import runs

    try:
        for run, folder in runs(found, "candidate" if only is Part.CANDIDATE else "reference"):
            if stalled is not None:
                watched = replace(run, given=replace(run.given, stalled=stalled))
                words = shlex.join(("-m", *prepared(watched, folder)))
                say(f"torchrun --standalone --nproc-per-node={run.world} {words}")
            else:
                say(f"{run.name}: recorded in {start(run, folder)}")
    except Failed as why:
        _warn_of(why)
        return FAULT
    return FOUND_NOTHING


def _warn_of(why: Failed) -> None:
    warn(str(why))
    if why.said:
        say(why.said, err=True)


def _chosen(name: str, specs: list[Path] | None, output: Output) -> EquivalenceDeclaration:
    """The equivalence with this name. The name of its module may be left out."""
    from tspec.diagnostics import did_you_mean
    from tspec.report.equivalences.text import qualified
    from tspec.resolve import load

    found = refuse(load(specs_of(specs, output.project)), output).equivalences
    chosen = [each for each in found if name in (each.name, qualified(each))]
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        listed = ", ".join(map(qualified, chosen))
        raise BadParameter(f"there are several: {listed}", param_hint="--equivalence")
    names = [each.name for each in found]
    known = f"there is {', '.join(names)}" if names else "there is none in SPECS"
    hint = did_you_mean(name, names) or known
    raise BadParameter(f"no equivalence is called `{name}`; {hint}", param_hint="--equivalence")


def _told(found: Iterable[Verdict], output: Output) -> Iterator[Verdict]:
    """Print each comparison as soon as it is made."""
    from tspec.report.equivalences.text import text

    for each in found:
        if each.failed is not None:
            _warn_of(each.failed)
        elif _is_text(output):
            say(text(each, shutil.get_terminal_size().columns))
        if each.is_empty:
            warn("nothing was compared: the layout has a place for no tensor of these kinds")
        yield each


def _report(found: Sequence[Verdict], declaration: EquivalenceDeclaration, output: Output) -> int:
    from tspec.report.equivalences.results import results
    from tspec.report.equivalences.text import table

    said = accepted(results(found, declaration), output).results
    write_file(said, output)
    if not _is_text(output):
        write_out(said, output)
    elif declaration.sweeps:
        say(f"\n{table(found, declaration, shutil.get_terminal_size().columns)}")
    if any(each.failed is not None or each.is_empty for each in found):
        return FAULT
    return FOUND if said.results else FOUND_NOTHING


def _is_text(output: Output) -> bool:
    return output.output_format in (None, Format.TEXT)


@contextmanager
def _folder(keep: Path | None, is_new: bool) -> Iterator[Path]:
    """The folder of the recordings: one that stays, or a temporary one.

    It exists already unless `is_new`.
    """
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="tspec-") as folder:
            yield Path(folder)
        return
    if not is_new and not keep.is_dir():
        raise BadParameter(f"there is no folder {keep}", param_hint="--record")
    if is_new and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise BadParameter(f"{keep} is there already: name another folder", param_hint="--record")
    keep.mkdir(parents=True, exist_ok=True)
    yield keep.resolve()


@contextmanager
def _ends_on_signals() -> Iterator[None]:
    """Within the block, a signal that ends the process raises an exception, so that child processes
    are ended too.
    """

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise typer.Exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
