"""z3's reading of a condition is the interpreter's: on random rules and jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import z3

from tests.check.jobs import job, random_shape
from tests.check.strategies import body, loaded, spec
from tspec.check.interpret.expressions import evaluate
from tspec.check.interpret.frames import EvaluationContext
from tspec.check.interpret.instances import RecordedJob, instances
from tspec.check.interpret.timeline import Timeline
from tspec.logic.encode import Encoder, moves
from tspec.logic.encoded import Encoded
from tspec.logic.tensor_facts import OF_ELEMENTS, are_possible, feature_of_tensor
from tspec.resolve.program.rules import Expr, Holds, Rule
from tspec.trace.model import Missing, Ref, Trace

CASES = 250


def frames(rule: Rule, trace: Trace) -> Iterator[EvaluationContext]:
    """Where the interpreter reads a rule, windows that are cut off left out."""
    lines = {stream.rank: Timeline(stream) for stream in trace.streams}
    for instance in instances(rule, RecordedJob(lines, trace.world)):
        for local in instance.locals.values():
            if local.window.close is not None:
                yield EvaluationContext(local, instance)


def conditions(rule: Rule) -> Iterator[tuple[Expr, bool]]:
    """The conditions of a rule, and whether they are read at the window's start."""
    if rule.when is not None:
        yield rule.when, rule.window.kind == "during"
    if isinstance(rule.expect, Holds):
        yield rule.expect.condition, False


def pinned(encoder: Encoder, leaf: Encoded, value: Any, names: dict[Any, int]) -> list[Any]:
    """That an unknown is what the interpreter read."""
    if isinstance(value, Missing):
        return [z3.Not(leaf.known), leaf.absent == (value is Missing.ABSENT)]
    sorts, sort = encoder.sorts, leaf.value.sort()
    found = [leaf.known, z3.Not(leaf.absent)]
    if sort == sorts.bool:
        found.append(leaf.value == bool(value))
    elif sort == sorts.int and isinstance(value, int):
        found.append(leaf.value == value)
    elif sort == sorts.float and isinstance(value, int | float):
        found.append(leaf.value == sorts.number(float(value)))
    elif sort == sorts.text and isinstance(value, str):
        found.append(leaf.value == z3.StringVal(value, encoder.context))
    elif sort == sorts.thing:
        key = value if isinstance(value, Ref) else id(value)
        number = names.setdefault(key, len(names))
        place = z3.Function("place", sorts.thing, sorts.int)
        found.append(place(leaf.value) == number)
        found.append(leaf.value == z3.Const(f"thing {number}", sorts.thing))
    return found


def read(encoder: Encoder, frame: EvaluationContext) -> list[Any]:
    """All that the interpreter reads in a frame, said of the encoder's unknowns."""
    names: dict[Any, int] = {}
    said = []
    for (expr, start), leaf in [*encoder.leaves.items(), *encoder.reckoned.items()]:
        at = EvaluationContext(frame.local, frame.instance, start=start)
        said += pinned(encoder, leaf, evaluate(expr, at), names)
    return said


def fits(encoder: Encoder, frame: EvaluationContext) -> bool:
    """True if a tensor can have the features that are read. The random ones of `job` need not fit each other."""
    tensors: dict[Any, dict[str, Any]] = {}
    for expr, start in encoder.leaves:
        feature = feature_of_tensor(expr)
        if feature is not None and feature[1] in OF_ELEMENTS:
            at = EvaluationContext(frame.local, frame.instance, start=start)
            tensors.setdefault((feature[0], start), {})[feature[1]] = evaluate(expr, at)
    for features in tensors.values():
        lacking = {value for value in features.values() if isinstance(value, Missing)}
        if lacking and len(set(map(str, features.values()))) > 1:
            return False
        if not lacking and not are_possible(features):
            return False
    return True


@pytest.mark.slow
def test_z3_reads_conditions_as_the_interpreter_does() -> None:
    seen: Counter[str] = Counter()
    for number in range(CASES):
        dice = Random(f"encode {number}")
        trace = job(random_shape(dice))
        for rule in loaded(spec([body(dice)])):
            for condition, start in conditions(rule):
                compare(rule, condition, start, trace, seen)
    assert seen["True"] > 100 and seen["False"] > 100 and seen["Missing"] > 50, seen


def compare(rule: Rule, condition: Expr, start: bool, trace: Trace, seen: Counter[str]) -> None:
    """In each frame: what the reads are is possible, and makes z3 decide as the interpreter."""
    encoder = Encoder()
    encoded = encoder.encode(condition, start)
    solver = z3.Solver(ctx=encoder.context)
    solver.add(*encoder.axioms, *encoder.lemmas())
    for frame in list(frames(rule, trace))[:6]:
        if not fits(encoder, frame):
            continue
        expected = evaluate(condition, EvaluationContext(frame.local, frame.instance, start=start))
        solver.push()
        solver.add(*read(encoder, frame))
        assert solver.check() == z3.sat, (rule.source.text[-400:], frame.local.window)
        wrong = encoded.known
        if isinstance(expected, bool):
            wrong = z3.Not(encoded.true if expected else encoded.false)
        solver.add(wrong)
        assert solver.check() == z3.unsat, (rule.source.text[-400:], expected)
        solver.pop()
        seen[type(expected).__name__ if isinstance(expected, Missing) else str(expected)] += 1


def test_what_does_not_move() -> None:
    [rule] = loaded(spec(["during update\n  expect update.lr > old(update.lr)"]))
    assert isinstance(rule.expect, Holds)
    compared: Any = rule.expect.condition
    assert not moves(compared.left)
