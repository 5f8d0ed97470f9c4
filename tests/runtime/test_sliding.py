"""Folds over time, value by value: what folding the whole window gives, at a cost that does not grow."""

from __future__ import annotations

import gc
import struct
import sys
import tracemalloc
import weakref
from collections.abc import Sequence
from random import Random
from types import FrameType
from typing import Any

import pytest

from tspec.builtin.numbers import INF, NAN
from tspec.runtime.edges import Ref
from tspec.runtime.folds import fold_many
from tspec.runtime.joint import RuleHistory
from tspec.runtime.pending import PendingInstance
from tspec.runtime.series.history import TimeFold
from tspec.runtime.series.sliding import FOLDS, READ_ANEW, FoldSeries
from tspec.runtime.tensors import TensorSample
from tspec.runtime.values import ABSENT, NO_HISTORY, NOT_RECORDED

NUMBERS = (0, 1, 2, 2**63, 0.0, -0.0, 1.0, 0.1, 0.2, 1e300, -1e16, NAN, INF)
CONDITIONS = (True, True, True, False, False, False, 3)
OTHERS = (
    "a",
    "b",
    (),
    (1,),
    (1.0,),
    (NOT_RECORDED,),
    frozenset(("a",)),
    {"a": 1},
    Ref("parameter", "w"),
)
MISSING = (ABSENT, NOT_RECORDED, NO_HISTORY)
KINDS = {
    "numbers": NUMBERS,
    "ints": (0, 1, 2, 3, 4, 5, 2**70),
    "mixed": (
        *NUMBERS,
        *CONDITIONS,
        *OTHERS,
        TensorSample({"digest": 1}),
        TensorSample({"digest": 2}),
        TensorSample({}),
    ),
    "conditions": CONDITIONS,
    "true": (True,),
    "false": (False,),
    "one": (0.5,),
}


def bits(value: Any) -> Any:
    return struct.pack("<d", value) if isinstance(value, float) else (type(value), value)


def whole(name: str, seen: list[tuple[int, Any]], span: tuple[int, int]) -> Any:
    """The fold of the window of the last instance, from everything that there was."""
    length, stride = span
    now = seen[-1][0]
    inside = [value for index, value in seen if now - length < index <= now]
    complete = seen[0][0] <= now - length + stride
    return fold_many(name, inside if complete else [*inside, NO_HISTORY])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FOLDS)
def test_a_fold_of_a_sliding_window_is_that_of_its_values(name: str, kind: str) -> None:
    for seed in range(40):
        draw = Random(f"{name} {kind} {seed}")
        span = (draw.choice((1, 2, 3, 7)), draw.choice((1, 1, 2)))
        series, seen, index = FoldSeries(name, *span), [], draw.choice((0, 1, 5))
        missing = draw.choice((0.0, 0.0, 0.1))
        for _ in range(40):
            value = draw.choice(MISSING if draw.random() < missing else KINDS[kind])
            seen.append((index, value))
            expected = whole(name, seen, span)
            assert bits(series.take(index, value)) == bits(expected), (seed, span, seen)
            index += draw.choice((0, 0, 1, 1, 2, 9))


@pytest.mark.parametrize("name", FOLDS)
def test_an_index_that_goes_back_is_unknown_and_begins_anew(name: str) -> None:
    series = FoldSeries(name, 2, 1)
    for index in (4, 5, 6):
        series.take(index, 1)
    assert series.take(5, 1) is NO_HISTORY
    again = [series.take(index, 1) for index in (7, 8)]
    assert bits(again[-1]) == bits(fold_many(name, [1, 1]))


def instructions(series: FoldSeries, items: Sequence[tuple[int, Any]]) -> int:
    """How many bytecode instructions it takes to fold some more values: a cost without a clock."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for index, value in items:
            series.take(index, value)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", sorted({*FOLDS} - {*READ_ANEW}))
def test_a_value_late_in_an_epoch_costs_what_an_early_one_does(name: str) -> None:
    series, spent = FoldSeries(name, 1, 1), []
    for start, until in ((0, 1_000), (1_100, 50_000)):
        for value in range(start, until):
            series.take(0, float(value))
        more = [(0, float(value)) for value in range(until, until + 100)]
        spent.append(instructions(series, more))
    assert spent[1] <= spent[0] * 1.01


@pytest.mark.parametrize("name", sorted({*FOLDS} - {"sum", "mean", *READ_ANEW}))
def test_a_long_window_of_steps_costs_what_a_short_one_does(name: str) -> None:
    spent = []
    for length in (100, 2_000):
        series = FoldSeries(name, length, 1)
        for step in range(length):
            series.take(step, float(step))
        more = [(step, float(step)) for step in range(length, 3 * length)]
        spent.append(instructions(series, more) / len(more))
    assert spent[1] <= spent[0] * 1.1


def held(series: FoldSeries, items: Sequence[tuple[int, Any]]) -> int:
    """Bytes that folding some values leaves behind."""
    gc.collect()
    tracemalloc.start()
    try:
        for index, value in items:
            series.take(index, value)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", sorted({*FOLDS} - {*READ_ANEW}))
def test_a_fold_over_an_epoch_holds_a_summary_or_a_value_of_each(name: str) -> None:
    """What `docs/design/live.md` says of the bytes per item."""
    digests = [(0, value * 2**40 + 7) for value in range(20_000)]
    most = {"distinct": 24, "sum": 20, "mean": 20}.get(name, 0.5)
    series = FoldSeries(name, 1, 1)
    assert held(series, digests) / len(digests) <= most
    assert held(series, [(1, 1)]) <= 1_000


def entry(epoch: int, subject: str) -> PendingInstance:
    return PendingInstance(0, 0, (0,), (1, 0), (subject,), (), False, (), (1, epoch, 0), 1)


def test_the_end_of_an_epoch_is_the_end_for_all_subjects() -> None:
    """Only one subject comes in the new epoch; what was kept of the others goes too."""

    class Value:
        pass

    def fill(book: RuleHistory) -> list[weakref.ref[Value]]:
        values = [Value() for _ in range(40)]
        for place, value in enumerate(values):
            past = book.past(entry(0, f"#{place % 20}"))
            past.over(TimeFold(0, "distinct", 1, "epoch"), (1, 0, 0), value)
        return [weakref.ref(value) for value in values]

    book = RuleHistory()
    known = fill(book)
    book.past(entry(0, "#0"))
    gc.collect()
    assert all(ref() is not None for ref in known)
    book.past(entry(1, "#0"))
    gc.collect()
    assert all(ref() is None for ref in known)
