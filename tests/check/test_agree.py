"""Random rules on random traces: all executors decide every instance alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from random import Random

import pytest

from tests.check.agreement import Executor, disagreement
from tests.check.jobs import job, random_shape
from tests.check.steady import steady
from tests.check.strategies import body as random_body
from tests.check.strategies import case, loaded, spec
from tspec.builtin.features import FUNCTIONS as FEATURES
from tspec.builtin.folds import FOLDS
from tspec.builtin.functions import FUNCTIONS
from tspec.check import columnar, replayed
from tspec.check.interpret import interpret
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Rule
from tspec.trace.model import Missing, Sample, Tensor, Trace

FOUND = Path(__file__).parent / "disagreements"

MENDED = (441, 2112, 2854, 3151, 3658, 4190, 5435, 6875)
"""Cases that hooks decided otherwise: subjects of a `once` rule that come within a call, a rank that is far behind,
subjects that come back within a step.
"""
IN_ORDER = 111
"""A case whose reason is that of the first member, which lacks the instance."""
EXAMPLES = 1000
"""Of one rule and one trace each."""


def parts(value: object) -> Iterator[object]:
    """Everything that a rule is made of."""
    yield value
    if isinstance(value, tuple):
        for item in value:
            yield from parts(item)
    elif is_dataclass(value):
        for each in fields(value):
            if each.name not in ("type", "span", "source", "node"):
                yield from parts(getattr(value, each.name))


def kinds(rule: Rule) -> Iterator[str]:
    """What of the language a rule uses."""
    window = rule.window
    yield f"window {window.kind} {window.span or ''}".strip()
    yield "once" if window.once else "not once"
    yield "every" if window.every else "not every"
    yield from (f"across {type(each).__name__}" for each in rule.across)
    for part in parts(rule):
        yield type(part).__name__
        match part:
            case rules.Fold():
                yield f"{part.scope} {part.name}"
                yield f"over {part.over.unit}" if part.over else "no over"
            case rules.Compare() | rules.Arithmetic():
                yield part.op
            case rules.Feature() | rules.Function():
                yield part.name


def oddities(trace: Trace) -> Iterator[str]:
    """What is odd about a trace."""
    if len(trace.streams) < trace.world:
        yield "a rank without a stream"
    for stream in trace.streams:
        if type(stream.records[-1]).__name__ != "Finish":
            yield "cut off"
        for record in stream.records:
            if isinstance(record, Sample) and record.gone:
                yield "gone"
            for value in getattr(record, "fields", {}).values():
                if value is Missing.ABSENT:
                    yield "absent"
                if value is Missing.NOT_RECORDED:
                    yield "not recorded"
                numbers = [value.norm, value.max] if isinstance(value, Tensor) else [value]
                if any(isinstance(each, float) and math.isnan(each) for each in numbers):
                    yield "NaN"


NEEDED = {
    *(f"window {each}" for each in ("before", "after", "during", "calls")),
    *(f"window each {each}" for each in ("step", "microbatch", "epoch", "run")),
    "once", "every", "across Axis", "across GroupField",
    "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/",
    "Not", "And", "Or", "Implies", "Negate", "Present", "Member", "SameObject", "Index",
    "Old", "Previous", "First", "Transpose", "Restrict", "Calls", "LastCall", "WindowCall",
    "Ordered", "Contains", "OnlyDuring", "over step", "over microbatch", "over epoch",
    *(f"{scope} {fold}" for scope in ("list", "group", "time") for fold in FOLDS),
    *FEATURES, *FUNCTIONS,
    "a rank without a stream", "gone", "absent", "not recorded", "NaN",
    "rank lacks it", "rank died", "rank has no such window", "members differ on when",
    "one holder", "cut off", "no history yet",
}  # fmt: skip
"""All that has to occur."""


@pytest.mark.slow
def test_the_cases_cover_the_language() -> None:
    """Each verdict is a tenth at least; each operator, window, fold and look-back occurs."""
    seen: Counter[str] = Counter()
    found: Counter[str] = Counter()
    refused = 0

    for number in range(EXAMPLES):
        body, shape = case(number)
        whole, trace = loaded(spec([body])), job(shape)
        refused += not whole
        seen.update({kind for rule in whole for kind in kinds(rule)})
        seen.update(oddities(trace))
        for each in interpret(whole, trace).decided:
            found[each.verdict] += 1
            words = each.reason.split()
            seen[" ".join(word for word in words if not word.isdigit())] += 1
    assert refused <= EXAMPLES / 100, refused
    assert sorted(NEEDED - set(seen)) == []
    for verdict in ("holds", "violated", "idle", "unknown"):
        assert found[verdict] >= 0.1 * found.total(), found


def agree(
    other: Executor,
    numbers: Iterable[int],
    rules_of_each: int = 1,
    as_in: Callable[[Trace], Trace] = lambda trace: trace,
) -> None:
    """The interpreter and another executor decide these cases alike; what differs is written down."""
    for number in numbers:
        rules_, trace = several(number, rules_of_each)
        found = disagreement(rules_, trace, _playing(other, as_in), _playing(interpret, as_in))
        if found:
            FOUND.mkdir(exist_ok=True)
            path = FOUND / f"{other.__module__.rpartition('.')[2]}-{number}.txt"
            path.write_text(found, encoding="utf-8")
            raise AssertionError(f"{path}:\n{found}")


def _playing(decide: Executor, as_in: Callable[[Trace], Trace]) -> Executor:
    """An executor of traces of some kind: a disagreement stays of that kind where its trace is made small."""
    return lambda rules, trace: decide(rules, as_in(trace))


def several(number: int, count: int) -> tuple[Sequence[Rule], Trace]:
    """The n-th job with a few rules."""
    if count == 1:
        body, shape = case(number)
        return loaded(spec([body])), job(shape)
    dice = Random(f"several {number}")
    return loaded(spec([random_body(dice) for _ in range(count)])), job(random_shape(dice))


def test_the_checker_of_jobs_agrees_with_the_interpreter() -> None:
    agree(replayed.check, (*range(400), *MENDED), as_in=steady)


def test_the_columnar_checker_agrees_with_the_interpreter() -> None:
    agree(columnar.check, (*range(16), IN_ORDER), rules_of_each=6)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.timeout(3600)  # minutes on a quiet machine
def test_the_checker_of_jobs_agrees_on_many_more() -> None:
    agree(replayed.check, range(400, 8000), as_in=steady)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.timeout(3600)  # minutes on a quiet machine
def test_the_columnar_checker_agrees_on_many_more() -> None:
    agree(columnar.check, range(16, 400), rules_of_each=6)
