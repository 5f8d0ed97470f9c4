"""`tspec infer DIR… -o drafts.tspec`: draft rules from recordings of good runs, or a layout from a
job.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.output import FAULT, refuse_no_folder
from tspec.cli.say import BadParameter, for_terminal, in_lines, say
from tspec.cli.script import KEY, command_of
from tspec.printable import visible

if TYPE_CHECKING:
    from tspec.infer import Inference

RunsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="DIRS",
        exists=True,
        file_okay=False,
        help="Recordings of good runs; with --full a folder of state dictionaries, one for each rank.",
        show_default=False,
    ),
]
LayoutOption = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="NAME",
        help="Draft a layout of that name, from a script on --ranks fake ranks or from --full.",
    ),
]
RanksOption = Annotated[
    int | None,
    typer.Option(
        "--ranks", metavar="N", min=1, help="How many ranks the script sees. With --layout."
    ),
]
FullOption = Annotated[
    Path | None,
    typer.Option(
        "--full",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="The state dictionary of a run on one device. With --layout.",
    ),
]
MeshOption = Annotated[
    str | None,
    typer.Option(
        "--mesh",
        metavar="AXES",
        help="How the ranks of --full are numbered, the fastest axis first: tp=2,dp=4.",
        show_default="one axis, `ranks`",
    ),
]
OutputOption = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FILE", dir_okay=False, help="Where to write the drafts."
    ),
]
OF_LAYOUTS = ("ranks", "full", "mesh")
UseOption = Annotated[
    list[str] | None,
    typer.Option("--use", metavar="MODULE", help="A module whose vocabulary drafts may use."),
]


def infer(  # noqa: PLR0913 (each is an option)
    ctx: typer.Context,
    output: OutputOption,
    runs: RunsArgument = None,
    use: UseOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Write the less informative drafts too.")
    ] = False,
    why_not: Annotated[
        str | None,
        typer.Option(
            "--why-not", metavar="TEXT", help="Explain why claims that contain TEXT are no drafts."
        ),
    ] = None,
    layout: LayoutOption = None,
    ranks: RanksOption = None,
    full: FullOption = None,
    mesh: MeshOption = None,
) -> None:
    """Draft rules from recordings of good runs, or a layout.

    With --layout, draft a layout: from a script that runs on fake ranks (-- script.py ARGS), or from the full tensors of one device (--full) and those of each rank (DIRS).
    """
    from tspec.infer import STANDARD
    from tspec.infer import infer as infer_drafts
    from tspec.infer.candidates import InferenceError
    from tspec.infer.emit import emit

    refuse_no_folder(output)
    refuse_reviewed(output)
    if layout is not None:
        _layout(ctx, layout, output, runs or [], (ranks, full, mesh))
        return
    _refuse_layouts_options(ctx)
    if not runs:
        raise BadParameter("name recordings of good runs", param_hint="DIRS")
    uses = (*STANDARD, *(name for name in use or () if name not in STANDARD))
    try:
        found = infer_drafts(runs, uses=uses, everything=everything)
    except InferenceError as error:
        say(f"tspec: {visible(str(error))}", err=True)
        raise typer.Exit(FAULT) from None
    for note in notes(found):
        say(for_terminal(f"note: {visible(note)}"), err=True)
    kept = not found.drafts and output.exists()
    if not kept:
        names = [str(run) for run in found.runs]
        output.write_text(emit(found.drafts, module_name(output), uses, names), encoding="utf-8")
    say(in_lines(summary(found, output, kept)))
    if why_not is not None:
        say(explanation(found, why_not))


def _layout(
    ctx: typer.Context,
    name: str,
    output: Path,
    folders: list[Path],
    given: tuple[int | None, Path | None, str | None],
) -> None:
    """Draft a layout from a script or from tensors."""
    from tspec.cli.draft_layout import draft_layout, from_script, from_tensors

    ranks, full, mesh = given
    if not re.fullmatch(r"[A-Za-z_]\w*", name, flags=re.ASCII):
        raise BadParameter(f"`{name}` is no name", param_hint="--layout")
    if full is not None:
        if len(folders) != 1:
            raise BadParameter("name the folder with the ranks' tensors", param_hint="DIRS")
        found = from_tensors(full, folders[0], mesh)
    else:
        if ranks is None:
            raise BadParameter("say how many ranks the script sees", param_hint="--ranks")
        found = from_script(command_of(ctx), ranks)
    draft_layout(name, found, output, module_name(output))


def _refuse_layouts_options(ctx: typer.Context) -> None:
    """Refuse options of layouts, and a script."""
    for each in ctx.command.params:
        source = ctx.get_parameter_source(each.name) if each.name in OF_LAYOUTS else None
        if source is not None and source.name == "COMMANDLINE":
            raise BadParameter("it is for --layout", param_hint=each.opts[0])
    if ctx.meta.get(KEY):
        raise BadParameter("a script is run for --layout only", param_hint="--")


def notes(found: Inference) -> list[str]:
    """Notes about the recordings, and about drafts left out because of an internal fault."""
    lines = list(found.notes)
    if found.untyped:
        number = _count(len(found.untyped), "candidate")
        lines.append(
            f"{number} left out, for a fault of tspec's own (please report it): {found.untyped[0]}"
        )
    return lines


def refuse_reviewed(output: Path) -> None:
    """End the command if it would overwrite drafts that a reviewer accepted or rejected."""
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


def summary(found: Inference, output: Path, kept: bool) -> str:
    """One line: how many drafts were written, and why other candidates were not. `kept` says that
    there were none, and that the file of earlier drafts was left as it was.
    """
    said = f"{_count(len(found.drafts), 'draft')} from {_count(len(found.runs), 'run')}"
    said = f"{said}; {output} is left as it was" if kept else f"{said} written to {output}"
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
    """For each candidate whose text contains `wanted`: that it is a draft, or why it is not."""
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
        f"  {d.reason}: {' '.join(d.claim.head.clauses())} expect {d.claim.expect}"
        f" (held {d.held:,}, broken {d.broken:,})"
        for d in found.dropped
        if wanted in d.claim.expect
    ]
    return "\n".join(lines) or f"  no candidate holds `{wanted}`: no relation proposes it"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
