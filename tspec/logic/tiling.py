"""Decides whether the pieces of a cut dimension tile it, with sizes and numbers of ranks as
symbols.

A cut declares that the size is divisible by its number of pieces. For a padded size this is not
assumed: it has to follow from the padding. Then z3 is asked about each cut: is there an index that
no rank holds, or that two ranks hold? About each product of sizes it is asked: does each index have
exactly one place? Sizes and numbers of ranks are at least 1 and otherwise free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from math import prod

import z3

from tspec.logic.questions import LIMIT, Answer
from tspec.resolve.program.sharding import Dimension, Product, Split, Sum, Term

SMALL = 8
"""Numbers of ranks that are tried first for a counterexample, which people check by hand."""

Holds = Callable[[z3.ArithRef], z3.BoolRef]


@dataclass(frozen=True, slots=True)
class Tiling:
    """The answer whether pieces tile a dimension: each index is on exactly one of the ranks that
    cut it.

    With `no`: no rank holds `index` if sizes and axes have the values of `sizes`.
    """

    answer: Answer
    index: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)


def tiling(dimension: Dimension) -> Tiling:
    """Decides whether the pieces of a dimension tile it: proved, refuted with an index, or unknown."""
    for found in _Dimension().tilings(dimension):
        if found.answer != "yes":
            return found
    return Tiling("yes")


class _Dimension:
    """The questions about one dimension, in one z3 context, so that answers repeat."""

    def __init__(self) -> None:
        self.context = z3.Context()
        self.names: dict[str, z3.ArithRef] = {}
        self.facts: list[z3.BoolRef] = []
        self._numbers = count()

    def tilings(self, dimension: Dimension) -> Iterator[Tiling]:
        size = self._size(dimension)
        match dimension.size:
            case Product(dimensions=inside):
                for inner in inside:
                    yield from self.tilings(inner)
                yield self._product()
            case Sum(terms=terms):
                for part in terms:
                    yield from self.tilings(Dimension(part))
                yield self._sum()
        yield from self._cuts(dimension, size)

    # --- sizes ----------------------------------------------------------------------------------

    def _new(self, name: str) -> z3.ArithRef:
        """An unknown that is 1 or more."""
        unknown = z3.Int(name, self.context)
        self.facts.append(unknown >= 1)
        return unknown

    def _fresh(self) -> z3.ArithRef:
        return self._new(f"_{next(self._numbers)}")

    def _term(self, term: Term) -> z3.ArithRef:
        if isinstance(term, int):
            return z3.IntVal(term, self.context)
        if term not in self.names:
            self.names[term] = self._new(term)
        return self.names[term]

    def _size(self, dimension: Dimension) -> z3.ArithRef:
        """The size without padding."""
        match dimension.size:
            case Product(dimensions=inside):
                return _times([self._padded(each)[0] for each in inside])
            case Sum(terms=terms):
                return z3.Sum([self._size(Dimension(each)) for each in terms])
            case term:
                return self._term(term)

    def _padded(self, dimension: Dimension) -> tuple[z3.ArithRef, list[Term | z3.ArithRef]]:
        """The size with padding, and its factors where it is padded."""
        size = self._size(dimension)
        if not dimension.padding:
            return size, []
        units = self._fresh()
        unit = _times([self._term(each) for each in dimension.padding])
        padded = unit * units
        self.facts += [padded >= size, padded - unit < size]
        return padded, [*dimension.padding, units]

    # --- questions ------------------------------------------------------------------------------

    def _cuts(self, dimension: Dimension, size: z3.ArithRef) -> Iterator[Tiling]:
        """Check the cuts in order: each divides the pieces that the one before left."""
        whole, factors = self._padded(dimension)
        for split in dimension.splits:
            ranks = self._term(split.axis)
            pieces = ranks if split.order == "contiguous" else 2 * ranks
            if not dimension.padding:
                length = self._fresh()
                self.facts.append(whole == pieces * length)
            else:
                left = _without(factors, split)
                if left is None:
                    yield self._uneven(whole, size, dimension.splits)
                    return
                factors = left
                length = _times([self._factor(each) for each in factors])
                if self._ask(whole != pieces * length)[0] != z3.unsat:
                    yield Tiling("unknown")
                    return
            yield self._tiles(split, ranks)
            whole = length

    def _factor(self, factor: Term | z3.ArithRef) -> z3.ArithRef:
        return self._term(factor) if isinstance(factor, int | str) else factor

    def _tiles(self, split: Split, ranks: z3.ArithRef) -> Tiling:
        """Decides whether each index is held by exactly one rank, for pieces of any one length."""
        length, index = self._fresh(), self._index()
        first, second = z3.Ints("first second", self.context)
        pieces = ranks if split.order == "contiguous" else 2 * ranks
        within = [index >= 0, index < pieces * length]
        owner = piece = index / length
        if split.order == "zigzag":
            owner = z3.If(piece < ranks, piece, pieces - 1 - piece)
        holds = _holder(split, ranks, length, index)
        if self._ask(*within, z3.Not(holds(owner)))[0] != z3.unsat:
            return Tiling("unknown")
        if self._ask(*within, first < second, holds(first), holds(second))[0] != z3.unsat:
            return Tiling("unknown")
        return Tiling("yes")

    def _product(self) -> Tiling:
        """Decides whether each index of a product of two sizes has one place, and each place one
        index.

        A product of more sizes is a product of two; the first of these is a product itself.
        """
        outer, inner, index = self._fresh(), self._fresh(), self._index()
        high, low = z3.Ints("high low", self.context)
        bounds = [high >= 0, high < outer, low >= 0, low < inner]
        missing = [index >= 0, index < outer * inner, index / inner >= outer]
        doubled = [*bounds, index == high * inner + low, index / inner != high]
        proved = all(self._ask(*wrong)[0] == z3.unsat for wrong in (missing, doubled))
        return Tiling("yes" if proved else "unknown")

    def _sum(self) -> Tiling:
        """Decides whether each index of a sum of two sizes is in exactly one of them, at one place
        there.

        A sum of more sizes is a sum of two. The same axes cut all of them, so the ranks of a part
        are those of the dimension.
        """
        first, second, index = self._fresh(), self._fresh(), self._index()
        in_first = z3.And(index >= 0, index < first)
        in_second = z3.And(index - first >= 0, index - first < second)
        within = [index >= 0, index < first + second]
        missing = [*within, z3.Not(in_first), z3.Not(in_second)]
        proved = all(self._ask(*wrong)[0] == z3.unsat for wrong in (missing, [in_first, in_second]))
        return Tiling("yes" if proved else "unknown")

    def _uneven(self, whole: z3.ArithRef, size: z3.ArithRef, splits: tuple[Split, ...]) -> Tiling:
        """Sizes for which equal pieces leave out an index that is no padding."""
        ranks = [self._term(split.axis) for split in splits]
        pieces = _times(
            [
                each if split.order == "contiguous" else 2 * each
                for split, each in zip(splits, ranks, strict=True)
            ]
        )
        index, length = self._index(), self._fresh()
        wrong = [
            whole >= pieces * length,
            whole < pieces * (length + 1),
            index == pieces * length,
            index < size,
        ]
        for bounds in ([each <= SMALL for each in ranks], []):
            _, model = self._ask(*wrong, *bounds)
            if model is not None:
                values = {
                    name: model.eval(each, model_completion=True).as_long()
                    for name, each in self.names.items()
                }
                return Tiling("no", model.eval(index).as_long(), values)
        return Tiling("unknown")

    def _index(self) -> z3.ArithRef:
        return z3.Int(f"index{next(self._numbers)}", self.context)

    def _ask(self, *wrong: z3.BoolRef) -> tuple[z3.CheckSatResult, z3.ModelRef | None]:
        """The solver's answer for a counterexample under the facts about the sizes, and its model
        if there is one.
        """
        solver = z3.Solver(ctx=self.context)
        solver.set("rlimit", LIMIT)
        solver.add(*self.facts, *wrong)
        answer = solver.check()
        return answer, solver.model() if answer == z3.sat else None


def _holder(split: Split, ranks: z3.ArithRef, length: z3.ArithRef, index: z3.ArithRef) -> Holds:
    """A formula that is true if a rank holds an index, as `Split` defines it."""

    def in_piece(piece: z3.ArithRef) -> z3.BoolRef:
        return z3.And(piece * length <= index, index < piece * length + length)

    def holds(rank: z3.ArithRef) -> z3.BoolRef:
        there = z3.And(rank >= 0, rank < ranks)
        if split.order == "contiguous":
            return z3.And(there, in_piece(rank))
        return z3.And(there, z3.Or(in_piece(rank), in_piece(2 * ranks - 1 - rank)))

    return holds


def _without(factors: list[Term | z3.ArithRef], split: Split) -> list[Term | z3.ArithRef] | None:
    """Factors of a length divided by the pieces of a cut, or None if they do not show that it is."""
    left = list(factors)
    places = [i for i, each in enumerate(left) if isinstance(each, str) and each == split.axis]
    if not places:
        return None
    del left[places[0]]
    if split.order == "contiguous":
        return left
    for place, each in enumerate(left):
        if isinstance(each, int) and each % 2 == 0:
            left[place] = each // 2
            return left
    return None


def _times(factors: list[z3.ArithRef]) -> z3.ArithRef:
    return prod(factors[1:], start=factors[0])
