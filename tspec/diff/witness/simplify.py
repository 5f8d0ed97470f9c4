"""Simpler values for a situation: round numbers, and the constants of the rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, pairwise, product

from tspec.logic.situations import Known, Situation, SituationRead
from tspec.logic.sorts import known_number
from tspec.logic.violations import RulePair
from tspec.resolve.program import rules, types
from tspec.resolve.program.types import plain
from tspec.resolve.program.walk import parts
from tspec.trace.model import Missing
from tspec.values import STEP_OF_RUN

Change = Callable[[Situation], Situation | None]

PLAIN = (1.0, 2.0, -1.0, 3.0, 5.0, 0.0, -3.0, -5.0)
MOST = 48
"""Changes that are tried; each is a run of the interpreter on a few records."""


def simpler_situations(pair: RulePair, situation: Situation) -> Iterator[Change]:
    """Changes to try, each of one read, on all members with the same value."""
    constants, texts = _constants(pair), _texts(pair)
    groups = _alike(situation)
    for reads in (*groups, *groups):  # One number may have to wait until another one is round.
        candidates = _candidates(reads[0], situation.reads[reads[0]], constants, texts)
        for candidate in islice(candidates, max(12, MOST // len(groups))):
            yield _setter(reads, candidate)


def plain_situations(pair: RulePair, situation: Situation) -> Iterator[Situation]:
    """The same with small numbers for its floats, if those are few; of two, their ratio counts."""
    floats = [reads for reads in _alike(situation) if _is_number(reads[0], situation)]
    if not 1 <= len(floats) <= 3:
        return
    tried: list[tuple[float, ...]] = []
    if len(floats) == 2:
        ratios = [number for number in _constants(pair) if number]
        for one in (1.0, -1.0):
            tried += [(ratio * one, one) for ratio in ratios]
            tried += [(one, ratio * one) for ratio in ratios]
    tried += product(PLAIN if len(floats) < 3 else PLAIN[:5], repeat=len(floats))
    for numbers in dict.fromkeys(tried):
        chosen = zip(floats, numbers, strict=True)
        new = {
            read: int(number) if plain(read.expr.type) == types.INT else number
            for reads, number in chosen
            for read in reads
        }
        yield replace(situation, reads={**situation.reads, **new})


def is_odd(value: Known) -> bool:
    """True if a number has many digits."""
    return isinstance(value, float) and math.isfinite(value) and len(repr(value)) > 6


def _is_number(read: SituationRead, situation: Situation) -> bool:
    """A float, or an int that is no place in the run."""
    if isinstance(situation.reads[read], Missing):
        return False
    if isinstance(read.expr, rules.Ambient) and read.expr.name in (
        "step",
        STEP_OF_RUN,
        "epoch",
        "microbatch",
    ):
        return False
    if isinstance(read.expr, rules.Fold) and read.expr.name == "count":
        return False
    return plain(read.expr.type) in (types.INT, types.FLOAT)


def _alike(situation: Situation) -> list[tuple[SituationRead, ...]]:
    """Reads that are the same for all members, together; the others one by one."""
    groups: dict[tuple[object, ...], list[SituationRead]] = {}
    for read, value in situation.reads.items():
        if not isinstance(read.expr, rules.Variable | rules.WindowCall):
            groups.setdefault((read.expr, read.start, read.side, str(value)), []).append(read)
    return [tuple(reads) for reads in groups.values()]


def _setter(reads: tuple[SituationRead, ...], candidate: Known) -> Change:
    def change(situation: Situation) -> Situation | None:
        if _rank(situation.reads[reads[0]]) <= _rank(candidate):
            return None
        new = dict.fromkeys(reads, candidate)
        return replace(situation, reads={**situation.reads, **new})

    return change


def _rank(value: Known) -> tuple[bool, int, float]:
    """The order of values for a reader: missing values and odd numbers last."""
    if isinstance(value, Missing):
        return (True, 0, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return (False, len(str(value)), 0.0)
    if isinstance(value, float) and not math.isfinite(value):
        return (True, 1, 0.0)
    return (False, len(f"{value}"), abs(value))


def _candidates(
    read: SituationRead, value: Known, constants: list[float], texts: list[str]
) -> Iterator[Known]:
    kind = plain(read.expr.type)
    if kind == types.INT:
        yield from dict.fromkeys(int(each) for each in constants if math.isfinite(each))
    elif kind == types.FLOAT:
        if isinstance(value, float) and math.isfinite(value):
            yield from dict.fromkeys(float(f"{value:.{digits}g}") for digits in (1, 2, 3, 4))
        yield from constants
    elif kind in (types.STRING, types.DTYPE, types.DEVICE):
        yield from texts


def _constants(pair: RulePair) -> list[float]:
    """The numbers of both rules, those next to them and between them, and the plainest ones."""
    found = set()
    for rule in pair.rules.values():
        for part in parts(rule):
            if not isinstance(part, rules.EventPattern):
                number = known_number(part)
                if number is not None and math.isfinite(number):
                    found.add(float(number))
    ordered = sorted(found)
    between = [(a + b) / 2 for a, b in pairwise(ordered)]
    between += [a + sign * b / 2 for a in ordered[:4] for b in ordered[:4] for sign in (1, -1) if b]
    near = [n + d for n in ordered for d in (1.0, -1.0)]
    every = [1.0, 2.0, 0.0, 3.0, *ordered, *between, *near, 0.5, -1.0, 10.0]
    return list(dict.fromkeys(float(f"{each:.15g}") if each else 0.0 for each in every))[:32]


def _texts(pair: RulePair) -> list[str]:
    found = ["a"]
    for rule in pair.rules.values():
        for part in parts(rule):
            if isinstance(part, rules.Constant) and isinstance(part.value, str):
                found.append(part.value)
    return list(dict.fromkeys(found))[:8]
