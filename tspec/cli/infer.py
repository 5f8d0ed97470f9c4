"""`tspec infer DIR… -o drafts.tspec`: draft rules from recordings of good runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.output import FAULT, refuse_no_folder
from tspec.cli.say import BadParameter, say
from tspec.printable import visible

if TYPE_CHECKING:
    from tspec.infer import Inference

RunsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="DIRS", exists=True, file_okay=False, help="Recordings of good runs."),
]
OutputOption = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FILE", dir_okay=False, help="Where to write the drafts."
    ),
]
UseOption = Annotated[
    list[str] | None,
    typer.Option("--use", metavar="MODULE", help="A module whose vocabulary drafts may use."),
]


def infer(
    runs: RunsArgument,
    output: OutputOption,
    use: UseOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Write the less telling drafts too.")
    ] = False,
    why_not: Annotated[
        str | None,
        typer.Option(
            "--why-not", metavar="TEXT", help="Say why claims that hold TEXT are no drafts."
        ),
    ] = None,
) -> None:
    """Draft rules from recordings of good runs."""
    from tspec.infer import STANDARD
    from tspec.infer import infer as infer_drafts
    from tspec.infer.candidates import InferenceError
    from tspec.infer.emit import emit

    refuse_no_folder(output)
    refuse_reviewed(output)
    uses = (*STANDARD, *(name for name in use or () if name not in STANDARD))
    try:
        found = infer_drafts(runs, uses=uses, everything=everything)
    except InferenceError as error:
        say(f"tspec: {visible(str(error))}", err=True)
        raise typer.Exit(FAULT) from None
    for note in notes(found):
        say(f"note: {visible(note)}", err=True)
    names = [str(run) for run in found.runs]
    output.write_text(emit(found.drafts, module_name(output), uses, names), encoding="utf-8")
    say(visible(summary(found, output, len(found.runs))))
    if why_not is not None:
        say(explanation(found, why_not))


def notes(found: Inference) -> list[str]:
    """What a person should know of the recordings, and of drafts that are left out for a fault of tspec's."""
    lines = list(found.notes)
    if found.untyped:
        number = _count(len(found.untyped), "candidate")
        lines.append(
            f"{number} left out, for a fault of tspec's own (please report it): {found.untyped[0]}"
        )
    return lines


def refuse_reviewed(output: Path) -> None:
    """Never overwrite what a reviewer accepted or rejected."""
    from tspec.resolve.outline import outline_of_text
    from tspec.source import Source

    if not output.exists():
        return
    for each in outline_of_text(Source.read(output)).declarations:
        if each.kind == "reject" or (each.kind == "invariant" and not each.draft):
            raise BadParameter(
                f"{output} holds what was reviewed (`{each.name.text}`): name another file, "
                "or move the reviewed rules into a file of their own"
            )


def module_name(output: Path) -> str:
    """A module's name from its file's: `my-drafts.tspec` is `my_drafts`."""
    name = re.sub(r"\W", "_", output.stem, flags=re.ASCII)
    return name if re.match(r"[A-Za-z_]", name) else f"drafts_{name}"


def summary(found: Inference, output: Path, runs: int) -> str:
    """One line: how many drafts were written, and what became of the other candidates."""
    said = f"{_count(len(found.drafts), 'draft')} from {_count(runs, 'run')} written to {output}"
    more = [
        f"{number} {what}"
        for number, what in (
            (len(found.held_back), "less telling (--all writes them)"),
            (len(found.implied), "implied by others"),
            (len(found.dropped), "dropped (--why-not TEXT says why)"),
        )
        if number
    ]
    return f"{said}; {', '.join(more)}" if more else said


def explanation(found: Inference, wanted: str) -> str:
    """Why each candidate whose text holds `wanted` is no draft, or that it is one."""
    lines = [f"  a draft: {d.claim.expect}" for d in found.drafts if wanted in d.claim.expect]
    lines += [
        f"  less telling: {d.claim.expect}" for d in found.held_back if wanted in d.claim.expect
    ]
    lines += [
        f"  implied by {by}: {d.claim.expect}"
        for d, by in found.implied
        if wanted in d.claim.expect
    ]
    lines += [
        f"  {d.reason}: {' '.join(d.claim.frame.clauses())} expect {d.claim.expect}"
        f" (held {d.held:,}, broken {d.broken:,})"
        for d in found.dropped
        if wanted in d.claim.expect
    ]
    return "\n".join(lines) or f"  no candidate holds `{wanted}`: no relation proposes it"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
