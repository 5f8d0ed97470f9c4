"""`tspec layout show FILE`, `tspec layout check SPECS…`: which rank holds which shard of each
tensor.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.given import Given, GivenOption, given_values
from tspec.cli.output import FAULT, refuse_no_folder, write_or_show
from tspec.cli.say import BadParameter, say

if TYPE_CHECKING:
    from tspec.layout.sizes import Sizes
    from tspec.resolve.program.sharding import LayoutDeclaration

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


class LayoutFormat(StrEnum):
    """The formats in which a layout is shown."""

    TEXT = "text"
    HTML = "html"


@app.callback()
def layout() -> None:
    """Inspect layouts: which rank holds which shard of each tensor."""


@app.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A spec file with a layout.")],
    rank: Annotated[int, typer.Option("--rank", metavar="N", min=0, help="The rank.")] = 0,
    name: Annotated[
        str | None, typer.Option("--layout", metavar="NAME", help="Which layout, if FILE has several.")
    ] = None,
    given: GivenOption = None,
    form: Annotated[LayoutFormat, typer.Option("--format", help="Text, or a picture of all ranks.")] = LayoutFormat.TEXT,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", dir_okay=False, help="Write it to FILE."),
    ] = None,
) -> None:  # fmt: skip
    """Show the shard of each tensor that a rank holds.

    With --format html, draw what all ranks hold. `--given seq=4096` sets a size of the input, `--given sequence_parallel=true` sets a flag.
    """
    if output is not None:
        refuse_no_folder(output)
    shown = chosen(layouts_of([file]), name)
    sizes = sizes_given(shown, given_values(given))
    if rank >= shown.mesh.world:
        raise BadParameter(f"`{shown.mesh.name}` has ranks 0 to {shown.mesh.world - 1}")
    from tspec.layout.shards import UnevenShards

    try:
        text = _written(shown, rank, sizes, form)
    except UnevenShards as uneven:
        raise BadParameter(str(uneven), param_hint="--given") from None
    if output is not None:
        write_or_show("layout", output, text)
    elif form is LayoutFormat.TEXT:
        say(text)
    else:
        sys.stdout.write(text)


def _written(shown: LayoutDeclaration, rank: int, sizes: Sizes, form: LayoutFormat) -> str:
    from tspec.layout.rows import groups, rows
    from tspec.layout.text import rank_text

    if form is LayoutFormat.TEXT:
        return rank_text(shown, rank, rows(shown, rank, sizes, groups(shown, sizes)))
    from tspec.layout.page import page

    return page(shown, rank, sizes)


@app.command()
def check(
    specs: Annotated[
        list[Path], typer.Argument(metavar="SPECS", help="Spec files, folders of them, or packs.")
    ],
) -> None:
    """Prove that the shards of each layout tile its tensors.

    The proof holds for all sizes and numbers of ranks.
    """
    for each in layouts_of(specs):
        places = len(each.placements)
        say(f"{each.module}.{each.name}: {places} places tile their tensors")


def layouts_of(specs: list[Path]) -> tuple[LayoutDeclaration, ...]:
    """The layouts of files. A layout with an error ends the command."""
    from tspec.cli.specs import refuse
    from tspec.resolve import load

    found = refuse(load(specs)).layouts
    if not found:
        say(f"tspec: no layout in {', '.join(map(str, specs))}", err=True)
        raise typer.Exit(FAULT)
    return found


def chosen(found: tuple[LayoutDeclaration, ...], name: str | None) -> LayoutDeclaration:
    from tspec.diagnostics import did_you_mean

    names = [each.name for each in found]
    if name is None and len(found) > 1:
        raise BadParameter(
            f"there are {len(found)}: name one of {', '.join(names)}", param_hint="--layout"
        )
    for each in found:
        if name in (None, each.name):
            return each
    hint = did_you_mean(name or "", names) or f"there is {', '.join(names)}"
    raise BadParameter(f"no layout is called `{name}`; {hint}", param_hint="--layout")


def sizes_given(layout: LayoutDeclaration, given: Given) -> Sizes:
    """The given values, if the layout reads them; another name is an error, since a typo would pass
    silently.
    """
    from tspec.diagnostics import did_you_mean
    from tspec.layout.sizes import inputs, sizes_of

    of_input = inputs(layout)
    numbers: dict[str, int] = {}
    flags = set()
    for name, value in given.items():
        if name in layout.flags and isinstance(value, bool):
            flags |= {name} if value else set()
        elif (
            name in of_input
            and isinstance(value, int)
            and not isinstance(value, bool)
            and value > 0
        ):
            numbers[name] = value
        else:
            known = [*layout.flags, *of_input]
            hint = did_you_mean(name, known) or f"it reads {', '.join(known) or 'none'}"
            what = f"`{name}` is no size or flag of the layout; {hint}"
            if name in known:
                kind = "true or false" if name in layout.flags else "a number from 1 on"
                what = f"`{name}` is {kind}"
            raise BadParameter(what, param_hint="--given")
    return sizes_of(layout, numbers, frozenset(flags))
