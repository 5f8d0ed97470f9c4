"""`tspec run SPECS… --equivalence NAME -- script.py ARGS…`: whether two ways to run a step agree."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterable, Iterator, Sequence
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
    from tspec.equivalence.verdicts import Verdict
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
    from tspec.equivalence.sides import NotExecuted, trials_of
    from tspec.equivalence.verdicts import verdicts

    declaration = _chosen(name, specs, output)
    try:
        trials = trials_of(declaration, command)
        with _folder(keep) as folder, _ends_on_signals():
            found = list(_told(verdicts(trials, folder), output))
    except (NotExecuted, ValueError) as why:
        warn(f"`{name}` cannot be run: {why}")
        raise typer.Exit(FAULT) from None
    raise typer.Exit(_report(found, declaration, output))


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


def _told(found: Iterable[Verdict], output: Output) -> Iterator[Verdict]:
    """Tell of each comparison as soon as it is made."""
    from tspec.report.equivalences import text

    for each in found:
        if each.failed is not None:
            warn(str(each.failed))
            say(each.failed.said, err=True)
        elif _is_text(output):
            say(text(each))
        if each.is_empty:
            warn("nothing was compared: the layout has a place for no tensor of these kinds")
        yield each


def _report(found: Sequence[Verdict], declaration: EquivalenceDeclaration, output: Output) -> int:
    from tspec.report.equivalences import results, table

    said = accepted(results(found, declaration), output).results
    write_file(said, output)
    if not _is_text(output):
        write_out(said, output)
    elif declaration.sweeps:
        say(f"\n{table(found, declaration)}")
    if any(each.failed is not None or each.is_empty for each in found):
        return FAULT
    return FOUND if said.results else FOUND_NOTHING


def _is_text(output: Output) -> bool:
    return output.output_format in (None, Format.TEXT)


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
