"""`tspec infer --layout NAME`: draft a layout from a script, or from the tensors of two runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tspec.cli.output import FAULT
from tspec.cli.say import BadParameter, for_terminal, progress, say, warn
from tspec.printable import visible

if TYPE_CHECKING:
    from tspec.infer.layouts.shards import Found
    from tspec.resolve.program.sharding import Axes

MOST_RANKS = 64
"""The greatest number of ranks for a draft from a script: each rank runs on its own, one after the
other.
"""

MOST_NAMES = 4
"""The greatest number of names on standard error, of tensors of which one thing is said. The draft
has all.
"""


def draft_layout(name: str, found: Found, output: Path, module: str) -> None:
    """Write the draft, and say what it leaves out or assumes. Without a place the command ends."""
    from tspec.infer.layouts.emit import draft

    made = draft(found, name, module)
    for note in made.notes:
        say(for_terminal(f"note: {visible(note.text(MOST_NAMES))}"), err=True)
    for each in made.unknown:
        say(for_terminal(f"tspec: not found: {visible(each.text(MOST_NAMES))}"), err=True)
    if not made.places:
        say("tspec: no tensor whose cut was found", err=True)
        raise typer.Exit(FAULT)
    output.write_text(made.text, encoding="utf-8")
    left_out = sum(each.tensors for each in made.unknown)
    left = f"; {left_out} left out" if left_out else ""
    say(visible(f"{made.places} places for {made.tensors} tensors written to {output}{left}"))


def from_script(command: Sequence[str], world: int) -> Found:
    """The facts of a dry run on fake ranks. A script that fails ends the command."""
    from tspec.infer.layouts.placed import found, is_plain
    from tspec.preflight.launch import DryRunFailed, dry_runs

    alone = None
    try:
        facts = dry_runs(command, (0,), world)
        blocks = any(each.blocks for each in facts[0].parameters)
        stages = dict(facts[0].axes).get("pp", 1) > 1
        if world > 1 and (blocks or stages):
            if world > MOST_RANKS:
                raise BadParameter(
                    f"stages and megatron-core are asked on each rank: at most {MOST_RANKS}",
                    param_hint="--ranks",
                )
            progress(f"running the first step of each of {world} ranks, one after the other")
            facts += dry_runs(command, range(1, world), world)
    except DryRunFailed as why:
        say(why.said, err=True)
        warn(f"{why}; other ranks do not exist, and collectives exchange nothing")
        raise typer.Exit(FAULT) from None
    is_first = world > 1 and not blocks
    if is_first and any(map(is_plain, facts[0].parameters)):
        with suppress(DryRunFailed):  # it may need several ranks
            (alone,) = dry_runs(command, (0,), 1)
    return found(facts, alone)


def from_tensors(full: Path, shards: Path, mesh: str | None) -> Found:
    """The facts from state dictionaries of one device and of several ranks. Raises BadParameter."""
    from tspec.infer.layouts.tensors import NoTensors, found, read, read_ranks

    try:
        ranks = read_ranks(shards)
        axes = axes_of(mesh, len(ranks))
        return found(read(full), ranks, axes)
    except NoTensors as why:
        say(f"tspec: {visible(str(why))}", err=True)
        raise typer.Exit(FAULT) from None


def axes_of(mesh: str | None, world: int) -> Axes:
    """`tp=2,dp=4` as axes, the one that changes fastest first. Raises BadParameter."""
    from math import prod

    if mesh is None:
        return (("ranks", world),)
    axes = sizes_of_axes(mesh)
    if prod(size for _, size in axes) != world:
        raise BadParameter(f"it has not the {world} ranks of the shards", param_hint="--mesh")
    return axes


def sizes_of_axes(said: str) -> Axes:
    """`tp=2,dp=4` as pairs. Raises BadParameter."""
    parts = [re.fullmatch(r"([A-Za-z_]\w*)=([1-9]\d*)", each) for each in said.split(",")]
    axes = tuple((part[1], int(part[2])) for part in parts if part is not None)
    if len(axes) != len(parts) or len(dict(axes)) != len(axes):
        raise BadParameter("write it as `tp=2,dp=4`", param_hint="--mesh")
    return axes
