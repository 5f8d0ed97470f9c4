"""`tspec run SPECS… --equivalence NAME -- script.py ARGS…`: whether two ways to run a step agree."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

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
    from tspec.equivalence.check import Outcome
    from tspec.equivalence.localize import Localization
    from tspec.equivalence.sides import Trial
    from tspec.resolve.program.trials import EquivalenceDeclaration


ABOUT_RULES = (
    "given",
    "accepted_only",
    "fail_on",
    "require_instances",
    "max_trace_size",
    "keep_going",
    "redact",
    "verbose",
)
"""Options of which a comparison of two runs knows nothing."""


def refuse_rule_options(ctx: typer.Context) -> None:
    """Refuse options that say something about rules."""
    for each in ctx.command.params:
        source = ctx.get_parameter_source(each.name) if each.name in ABOUT_RULES else None
        if source is not None and source.name == "COMMANDLINE":
            raise BadParameter(
                "it is about rules, not about an equivalence", param_hint=each.opts[0]
            )


def check(
    name: str, specs: list[Path] | None, command: Sequence[str], keep: Path | None, output: Output
) -> NoReturn:
    """Run the reference and the candidate, compare, report, and leave with 0, 1 or 2.

    The recordings stay in the folder `keep` if it is given.
    """
    from tspec.equivalence.sides import NotExecuted, trial_of

    declaration = _chosen(name, specs, output)
    try:
        trial = trial_of(declaration, command)
        with _folder(keep) as folder, _ends_on_signals():
            outcome, found = _outcome(trial, folder)
    except (NotExecuted, ValueError) as why:
        warn(f"`{name}` cannot be run: {why}")
        raise typer.Exit(FAULT) from None
    raise typer.Exit(_report(outcome, found, declaration, output))


def _chosen(name: str, specs: list[Path] | None, output: Output) -> EquivalenceDeclaration:
    """The equivalence of a name, with or without its module's."""
    from tspec.diagnostics import did_you_mean
    from tspec.report.equivalences import qualified
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


def _outcome(trial: Trial, folder: Path) -> tuple[Outcome, Localization | None]:
    """Both sides, compared; where they differ, modules judged alone. A side that fails ends the command."""
    from tspec.equivalence.check import compare, run_candidate, run_reference
    from tspec.equivalence.launch import Failed
    from tspec.equivalence.localize import localize

    try:
        reference = run_reference(trial, folder)
        candidate = run_candidate(trial, reference.recording, folder)
        outcome = compare(trial, reference, candidate)
        if not trial.localize or not (outcome.wrong or outcome.faults):
            return outcome, None
        return outcome, localize(trial, reference, candidate, folder)
    except Failed as why:
        warn(str(why))
        say(why.said, err=True)
        raise typer.Exit(FAULT) from None


def _report(
    outcome: Outcome,
    localized: Localization | None,
    declaration: EquivalenceDeclaration,
    output: Output,
) -> int:
    from tspec.report.equivalences import results, text

    found = accepted(results(outcome, declaration, localized), output).results
    write_file(found, output)
    if output.output_format in (None, Format.TEXT):
        say(text(outcome, declaration, localized))
    else:
        write_out(found, output)
    if not outcome.comparisons and not outcome.faults:
        warn("nothing was compared: the layout has a place for no tensor of these kinds")
        return FAULT
    return FOUND if found.results else FOUND_NOTHING


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Where recordings go: a folder that stays, or one that is removed."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="tspec-") as folder:
            yield Path(folder)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise BadParameter(f"{keep} is there already: name another folder", param_hint="--record")
    keep.mkdir(parents=True, exist_ok=True)
    yield keep.resolve()


@contextmanager
def _ends_on_signals() -> Iterator[None]:
    """Within the block a request to end is an exception, so that what was started ends too."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise typer.Exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
