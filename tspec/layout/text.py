"""The shards of a rank, as text of at most 80 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import count, takewhile

from tspec.diagnostics import WIDTH
from tspec.layout.indices import Indices, StridedBlocks
from tspec.layout.ranks import coordinates, factorisations
from tspec.layout.replicas import replicas
from tspec.layout.rows import Row
from tspec.layout.shards import Shard
from tspec.resolve.program.sharding import Axes, LayoutDeclaration, Modules

SHOWN = 4
"""The number of blocks of indices that are written in full."""
MOST_NUMBERS = 6
"""The number of ranks at one distance from each other that are written in full."""


def rank_text(layout: LayoutDeclaration, rank: int, rows: Sequence[Row]) -> str:
    """A rank: its coordinates, its stages, and its shard of each tensor."""
    lines = [f"layout {layout.name}: rank {rank} of {layout.mesh.world}"]
    names = ["", *(f"{name}: " for name, _ in layout.mesh.regroups)]
    for name, axes in zip(names, factorisations(layout.mesh), strict=True):
        lines += _wrapped(name + place_text(axes, rank), "  ")
    at = coordinates(layout.mesh.axes, rank).get("pp", 0)
    for stage in layout.stages:
        if stage.number == at:
            chunk = f", chunk {stage.chunk}" if any(each.chunk for each in layout.stages) else ""
            held = ", ".join(map(_modules_text, stage.modules))
            lines += _wrapped(f"stage {stage.number}{chunk}: {held}", "  ")
    for row in rows:
        lines += ["", *_row(layout, rank, row)]
    return "\n".join(lines)


def place_text(axes: Axes, rank: int) -> str:
    """The coordinates of a rank: `tp 1 of 2, dp 0 of 4`, the axis that changes fastest first."""
    at = coordinates(axes, rank)
    return ", ".join(f"{axis} {at[axis]} of {size}" for axis, size in axes)


def _modules_text(modules: Modules) -> str:
    if modules.numbers is None:
        return modules.prefix
    first, last = modules.numbers
    return f"{modules.prefix}{first}..{last}{modules.suffix}"


def _row(layout: LayoutDeclaration, rank: int, row: Row) -> Iterator[str]:
    head = f"{row.place.kind} {names_text(row.names)}"
    if row.shard is None:
        yield from _wrapped(head, "", "  ")
        yield f"  its size needs `{row.lacking}`: --given {row.lacking}=NUMBER"
        return
    yield from _wrapped(head, "", "  ")
    yield from _wrapped(shape_text(row.shard), "  ", "    ")
    for number, each in enumerate(row.shard.dimensions):
        whole = each.number == each.size == each.real
        if not whole:
            yield from _wrapped(f"dimension {number}: {indices_text(each)}", "  ", "    ")
    if row.shard.flat is not None:
        first, last = row.shard.flat
        yield from _wrapped(f"flattened: elements {first}..{last - 1}", "  ", "    ")
    if row.shard.partial:
        yield f"  a summand over {', '.join(row.shard.partial)}"
    same = [other for other in replicas(layout, row.how, rank) if other != rank]
    if same:
        yield from _wrapped(f"the same on {ranks_text(same)}", "  ", "    ")


def shape_text(shard: Shard) -> str:
    """`[4, 8] of [8, 8]`."""
    return f"{list(shard.shape)} of {list(shard.full)}"


def indices_text(indices: Indices) -> str:
    """`0..3, 12..15 and 2 of padding`, in the rank's own order."""
    real: list[str] = []
    for run in indices.runs:
        real += _run_text(run, indices.real)
    text = ", ".join(real) or "nothing"
    return f"{text} and {indices.padding} of padding" if indices.padding else text


def _run_text(run: StridedBlocks, real: int) -> Iterator[str]:
    starts = [start for start in run.starts() if start < real]
    blocks = [_range(start, min(start + run.length, real) - 1) for start in starts]
    if len(blocks) <= SHOWN:
        yield from blocks
    else:
        yield f"{blocks[0]}, {blocks[1]}, … {blocks[-1]} ({len(blocks)} blocks)"


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"


def ranks_text(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0..3, 8`."""
    return f"rank{'' if len(ranks) == 1 else 's'} {numbers_text(ranks)}"


def numbers_text(numbers: Sequence[int]) -> str:
    """Numbers in order, neighbours as ranges of three or more: `0..3, 8`. More than six with one
    distance between them are shortened: `0, 8, … 504`.
    """
    left, found = sorted(numbers), list[str]()
    while left:
        step = left[1] - left[0] if len(left) > 1 else 1
        expected = count(left[0], step)
        run = [each for each, _ in takewhile(lambda of: of[0] == of[1], zip(left, expected))]  # noqa: B905
        if step == 1 and len(run) > 2:
            found.append(_range(run[0], run[-1]))
        elif step > 1 and len(run) > MOST_NUMBERS:
            found.append(f"{run[0]}, {run[1]}, … {run[-1]}")
        else:
            run = run[:1]
            found.append(str(run[0]))
        left = left[len(run) :]
    return ", ".join(found)


def of_all_layers(name: str) -> str:
    """A name without the numbers of its layers: `layers.*.weight`."""
    return ".".join("*" if part.isdecimal() else part for part in name.split("."))


def names_text(names: Sequence[str]) -> str:
    """Names that differ in one number as one: `layers.0..11.weight`."""
    first, last = names[0], names[-1]
    parts = [re.split(r"(\d+)", name) for name in (first, last)]
    # Names with different numbers of parts are handled below.
    differing = [i for i, (a, b) in enumerate(zip(*parts, strict=False)) if a != b]
    if len(names) < 2 or len(parts[0]) != len(parts[1]) or len(differing) != 1:
        return ", ".join(names)
    place = differing[0]
    found = [re.split(r"(\d+)", name) for name in names]
    if any(len(each) != len(parts[0]) or not each[place].isdigit() for each in found):
        return ", ".join(names)
    numbers = numbers_text([int(each[place]) for each in found])
    middle = numbers if "," not in numbers else f"{{{numbers}}}"
    return "".join([*parts[0][:place], middle, *parts[0][place + 1 :]])


def _wrapped(text: str, indent: str, later: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  " if later is None else later,
        break_on_hyphens=False,
    )
