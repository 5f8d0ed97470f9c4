"""`tspec preflight FILE -- script.py`: a script's first step as one rank of many, against a layout."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.given import GivenOption, given_values
from tspec.cli.layout import chosen, layouts_of, sizes_given
from tspec.cli.output import FAULT, FOUND, FOUND_NOTHING
from tspec.cli.say import BadParameter, say, warn
from tspec.cli.script import command_of
from tspec.printable import visible

if TYPE_CHECKING:
    from tspec.preflight.facts import RankFacts
    from tspec.resolve.program.sharding import Axes, LayoutDeclaration, MeshDeclaration


class Tensors(StrEnum):
    """Whether tensors have data, or only shapes."""

    FAKE = "fake"
    REAL = "real"


def preflight(  # noqa: PLR0913 (each is an option)
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A spec file with a layout.")],
    layout: Annotated[
        str | None,
        typer.Option("--layout", metavar="NAME", help="Which layout, if FILE has several."),
    ] = None,
    mesh: Annotated[
        list[str] | None,
        typer.Option(
            "--mesh",
            metavar="AXES",
            help="Other sizes for axes of the layout's mesh: tp=8,dp=64; may be given several times.",
        ),
    ] = None,
    rank: Annotated[
        list[int] | None,
        typer.Option(
            "--rank", metavar="N", min=0, help="A rank to run; may be given several times."
        ),
    ] = None,
    given: GivenOption = None,
    tensors: Annotated[
        Tensors,
        typer.Option(
            "--tensors",
            help="Fake tensors have no elements: large models take seconds, and no memory.",
        ),
    ] = Tensors.FAKE,
) -> None:
    """Compare a script's first step with a layout, in one process.

    The script runs unedited as one rank of a job whose other ranks do not exist. Parameters, inputs and outputs of modules are compared with the layout, and sums over ranks with those that the layout needs. Collectives and memory are shown. Exits with 1 if something is not as the layout says.
    """
    command = command_of(ctx)
    declared = chosen(layouts_of([file]), layout)
    wanted = replace(declared, mesh=_resized(declared.mesh, mesh or ()))
    sizes = sizes_given(wanted, given_values(given))
    ranks = sorted(set(rank or (0, wanted.mesh.world - 1)))
    if ranks[-1] >= wanted.mesh.world:
        raise BadParameter(f"there are ranks 0 to {wanted.mesh.world - 1}", param_hint="--rank")
    facts = _facts(command, ranks, wanted, tensors)
    from tspec.preflight.check import problems
    from tspec.preflight.tensors import judged
    from tspec.preflight.text import problems_text, rank_text

    found = problems(wanted, sizes, facts)
    for line in (*(each for of in facts for each in rank_text(wanted, of)), *problems_text(found)):
        say(replace(line, said=visible(line.said)).folded(shutil.get_terminal_size().columns))
    parameters = len({each.name for of in facts for each in of.parameters})
    if not found:
        passed = {each.tensor.name for of in facts for each, _ in judged(wanted, sizes, of)}
        modules = f"{len(passed)} module{'' if len(passed) == 1 else 's'}"
        of_modules = f" and activations of {modules}" if passed else ""
        say(f"{parameters} parameters{of_modules} are as the layout says")
    raise typer.Exit(FOUND if found else FOUND_NOTHING)


def _facts(
    command: Sequence[str], ranks: Sequence[int], layout: LayoutDeclaration, tensors: Tensors
) -> list[RankFacts]:
    """The facts of each rank. A script that fails ends the command."""
    from tspec.preflight.launch import DryRunFailed, dry_runs

    try:
        return dry_runs(command, ranks, layout.mesh.world, tensors.value)
    except DryRunFailed as why:
        say(why.said, err=True)
        warn(f"{why}; other ranks do not exist, and values of tensors are wrong")
        if tensors is Tensors.FAKE:
            warn("if it reads elements of tensors, run it with --tensors real")
        raise typer.Exit(FAULT) from None


def _resized(mesh: MeshDeclaration, said: Sequence[str]) -> MeshDeclaration:
    """The mesh with other sizes. Raises BadParameter."""
    from tspec.cli.draft_layout import sizes_of_axes

    sizes = dict(sizes_of_axes(",".join(said))) if said else {}
    unknown = sizes.keys() - mesh.all_axes.keys()
    if unknown:
        raise BadParameter(
            f"`{mesh.name}` has no axis `{min(unknown)}`, but {', '.join(mesh.all_axes)}",
            param_hint="--mesh",
        )

    def resized(axes: Axes) -> Axes:
        return tuple((axis, sizes.get(axis, size)) for axis, size in axes)

    found = replace(
        mesh,
        axes=resized(mesh.axes),
        regroups=tuple((name, resized(axes)) for name, axes in mesh.regroups),
    )
    for name, axes in found.regroups:
        if prod(size for _, size in axes) != found.world:
            raise BadParameter(
                f"`{name}` has not the {found.world} ranks of the mesh", param_hint="--mesh"
            )
    return found
