"""Finds views with the shape of a transpose, although they keep the order of the elements.

`x.view(n, places, channels)` of `[n, channels, places]` has the shape of `x.transpose(1, 2)`, but
each of its rows mixes channels and places. A view that only splits a dimension, or merges
neighbours, moves no dimension.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import Any

from tspec.runtime.live.losses.graph import REORDERS, first_input, nodes, operation_of, shape_of

Shape = Sequence[int]
_VIEWS = frozenset({"View", "UnsafeView", "ReshapeAlias"})
_SHIFTS = frozenset({"Slice", "Cat", "ConstantPadNd"})
"""Before a view, or as a slice after it, they shift the rows of a matrix against each other, as scores of relative positions are."""


def swapping_views(losses: Any) -> list[str]:
    """The shapes before and after each view in a graph that stands where a transpose was meant."""
    found = nodes(losses)
    sliced = {
        following
        for operation, node in found
        if operation == "Slice"
        for following, _ in node.next_functions
    }
    views = [node for operation, node in found if operation in _VIEWS and node not in sliced]
    moved = (shapes for node in views if node._input_metadata and (shapes := _moved(node)))
    return [f"{list(before)} -> {list(after)}" for before, after in moved]


def _moved(view: Any) -> tuple[Shape, Shape] | None:
    """The shapes before and after a view that has the shape of a transpose, or that undoes a
    transpose in shape and not in order. None for other views.
    """
    source, after = first_input(view), shape_of(view)
    before = tuple(view._saved_self_sym_sizes)
    operation = "" if source is None else operation_of(source)
    if operation not in _SHIFTS and swaps(before, after):
        return before, after
    if operation == "Stack" and source._saved_dim == 0 and merges_apart(before, after):
        return before, after  # the last states of a recurrent layer, in both directions
    if operation == "Clone":
        source = first_input(source)
    if source is None or operation_of(source) not in REORDERS:
        return None
    first = first_input(source)
    is_back = first is not None and first._input_metadata and shape_of(first) == after != before
    return (before, after) if is_back and _long(before) != _long(after) else None


def _long(shape: Shape) -> list[int]:
    """Sizes above 1: a view that only moves a dimension of size 1 keeps the order, as in `einsum`."""
    return [size for size in shape if size > 1]


def swaps(before: Shape, after: Shape) -> bool:
    """True if a view from shape `before` to `after` changes the order of sizes, so that a transpose
    was meant.

    False if the view may be a split and a merge: `[batch, time]` to `[batch * time / c, c]`, where
    `c` happens to be the batch.
    """
    if prod(before) != prod(after) or prod(before) == 0:
        return False
    return any(_is_swap(*each) for each in _apart(before, after))


def _apart(before: Shape, after: Shape) -> Iterator[tuple[bool, list[int], list[int]]]:
    """Groups of dimensions between borders that both shapes share, where both have several
    dimensions of different sizes.

    Each comes with a flag whether it is the first group, which holds the batch.
    """
    before, after = _long(before), _long(after)
    ends = [list(accumulate(shape, mul)) for shape in (before, after)]
    common = sorted(set(ends[0]) & set(ends[1]))
    for low, high in pairwise([1, *common]):
        runs = [
            [size for size, end in zip(shape, of, strict=True) if low < end <= high]
            for shape, of in zip((before, after), ends, strict=True)
        ]
        if min(map(len, runs)) > 1:
            yield low == 1, *runs


def _is_swap(with_batch: bool, before: list[int], after: list[int]) -> bool:
    if len(before) == len(after) == 2:
        # If one size divides the other, a split and a merge may give the same shape, for example
        # attention heads as long as the batch.
        return before == after[::-1] and max(before) % min(before) != 0
    if not with_batch:
        return (
            _is_rotation(before, after)
            or merges_apart(before, after)
            or merges_apart(after, before)
        )
    batch, first = before[0], after[0]
    if first > batch and first % batch == 0:  # the batch was merged with the next dimension
        inner = _apart(before[1:], [first // batch, *after[1:]])
        if any(_is_swap(False, *each[1:]) for each in inner):
            return True
    return _keeps_the_middle(before, after)


def _is_rotation(before: list[int], after: list[int]) -> bool:
    """`[c, h, w]` as `[h * w, c]` or `[h, w, c]`, or `[h, w, c]` as `[c, h, w]`; `[n, t, h * d]` as `[n * h, t, d]`."""
    to_front = after[0] == before[-1] and after[1:] == before[:-1]
    splits_groups = (
        len(before) == 2 and after[0] % before[0] == 0
    )  # of channels, as many as columns
    to_back = after[-1] == before[0] and not splits_groups
    return to_back or to_front or _keeps_the_middle(before, after)


def merges_apart(before: Shape, after: Shape) -> bool:
    """`[h, t, d]` as `[t, h * d]`: heads that were not moved to their places before they are merged.

    False if `t` divides `h`: `[c, h, w]` as `[h, c * w]` may be `h` groups of channels.
    """
    if len(before) != 3:
        return False
    apart, middle, last = before
    return list(after) == [middle, apart * last] and apart % middle != 0


def _keeps_the_middle(before: list[int], after: list[int]) -> bool:
    """`[n, t, h * d]` as `[n * h, t, d]`: heads go to the batch, and were not moved before."""
    return len(before) == len(after) == 3 and before[1] == after[1]
