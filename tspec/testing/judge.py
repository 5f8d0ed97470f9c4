"""Compares a test's outcomes with the verdicts: each difference with place, numbers and a hint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tspec.check.interpret import values_read
from tspec.check.interpret.frames import GroupInstance
from tspec.check.verdicts import Decision
from tspec.diagnostics import Diagnostic
from tspec.resolve.program.declarations import ExpectedOutcome
from tspec.resolve.program.rules import Rule
from tspec.testing.run import TestRun
from tspec.values import listed
from tspec.why.look import InspectedInstance, look

SHOWN = 3
"""Instances that one message lists."""


def judge(test_run: TestRun, known: Mapping[str, Rule]) -> tuple[Diagnostic, ...]:
    """The differences between a test's outcomes and the verdicts; none if it passes."""
    if test_run.problem is not None:
        return (test_run.problem,)
    found: list[Diagnostic] = []
    for outcome in test_run.test.outcomes:
        if outcome.rule is None:
            continue
        rule = known[outcome.rule]
        if outcome.violated:
            found += _missed(test_run, rule, outcome)
        else:
            found += _unknown(test_run, rule, outcome)
    return (*found, *_unlisted(test_run, known))


def fails(test_run: TestRun, rule: Rule) -> bool:
    """True if a test fails because of one of its rules. It is quicker than `judge`."""
    found = [each for _, each in test_run.decisions[rule.qualified]]
    violated = [each for each in found if each.verdict == "violated"]
    held = [each for each in found if each.verdict == "holds"]
    listed = []
    for outcome in test_run.test.outcomes:
        if outcome.rule != rule.qualified:
            continue
        if not outcome.violated:
            if all(each.verdict == "unknown" for each in found):
                return True
            continue
        listed.append(outcome)
        if _steps_missed(violated, held, outcome) is not None:
            return True
    return any(not any(_at_place(each, outcome) for outcome in listed) for each in violated)


def _steps_missed(
    violated: Sequence[Decision], held: Sequence[Decision], outcome: ExpectedOutcome
) -> set[int] | None:
    """Steps in which a rule held although a violation was expected; an empty set if it was never
    violated; None if all is well.
    """
    there = {each.step for each in violated if _at_place(each, outcome)}
    missed = {each.step for each in held if _at_place(each, outcome)} - there
    if there and (outcome.steps is None or not missed):
        return None
    return missed if there else set()


# --- violations that were listed and did not come -----------------------------------------------


def _missed(test_run: TestRun, rule: Rule, outcome: ExpectedOutcome) -> Iterator[Diagnostic]:
    """Expected violations that are missing."""
    found = [each for _, each in test_run.decisions[rule.qualified]]
    violated = [each for each in found if each.verdict == "violated"]
    held = _steps_missed(violated, [e for e in found if e.verdict == "holds"], outcome)
    if held is None:
        return
    steps = f" at step {_listed(sorted(held))}" if held else _place(outcome)
    message = f"`{rule.name}` is not violated{steps}"
    yield Diagnostic(
        "TS0601",
        message,
        outcome.span,
        test_run.test.source,
        hint=_nearest(test_run, rule, outcome, held),
    )


def _at_place(each: Decision, outcome: ExpectedOutcome) -> bool:
    steps = outcome.steps
    return (
        (steps is None or steps[0] <= each.step <= steps[1])
        and (outcome.rank is None or outcome.rank in each.instance.ranks)
        and (outcome.subject is None or outcome.subject in each.instance.subjects)
    )


def _place(outcome: ExpectedOutcome) -> str:
    steps = "" if outcome.steps is None else f" at step {_range(*outcome.steps)}"
    rank = "" if outcome.rank is None else f" on rank {outcome.rank}"
    return steps + rank + (f' for "{outcome.subject}"' if outcome.subject else "")


def _nearest(test_run: TestRun, rule: Rule, outcome: ExpectedOutcome, held: set[int]) -> str:
    """The verdict at the place of an expected violation, or the nearest one elsewhere."""
    found = test_run.decisions[rule.qualified]
    if not found:
        return f"it has no instance: {_without(rule)}"
    there = [pair for pair in found if _at_place(pair[1], outcome)]
    there = [pair for pair in there if not held or pair[1].step in held]
    elsewhere = [pair for pair in found if pair[1].verdict == "violated"]
    looks = sorted(
        (look(rule, grouped, each) for grouped, each in there), key=InspectedInstance.nearness
    )
    if looks:
        return f"{where(looks[0].decided)} {looks[0].said()}"
    if elsewhere:
        return f"it is violated {where(elsewhere[0][1])}"
    return f"it has no instance there; it has {len(found)} elsewhere"


def _without(rule: Rule) -> str:
    if rule.window.event is not None:
        return f"the script has no call of {' or '.join(rule.window.event.events)}"
    return "nothing that it is about is in the script"


# --- rules that pass because all is unknown -----------------------------------------------------


def _unknown(test_run: TestRun, rule: Rule, outcome: ExpectedOutcome) -> Iterator[Diagnostic]:
    found = test_run.decisions[rule.qualified]
    if any(each.verdict != "unknown" for _, each in found):
        return
    if not found:
        message = f"`{rule.name}` passes only because it has no instance"
        hint = _without(rule)
    else:
        message = f"`{rule.name}` passes only because every verdict is unknown"
        grouped, each = found[-1]
        hint = f"{where(each)} {look(rule, grouped, each).said()}"
    yield Diagnostic("TS0602", message, outcome.span, test_run.test.source, hint=hint)


# --- violations that were not listed ------------------------------------------------------------


def _unlisted(test_run: TestRun, known: Mapping[str, Rule]) -> Iterator[Diagnostic]:
    for name, found in test_run.decisions.items():
        rule = known[name]
        listed = [each for each in test_run.test.outcomes if each.rule == name and each.violated]
        more = [
            pair
            for pair in found
            if pair[1].verdict == "violated"
            and not any(_at_place(pair[1], outcome) for outcome in listed)
        ]
        if more:
            yield _unexpected(test_run, rule, more)


def _unexpected(
    test_run: TestRun, rule: Rule, pairs: Sequence[tuple[GroupInstance, Decision]]
) -> Diagnostic:
    grouped, first = pairs[0]
    values = values_read(rule, grouped)
    read = f": {', '.join(f'{text} = {value}' for text, value in values.items())}" if values else ""
    others = f", and {len(pairs) - 1} more" if len(pairs) > 1 else ""
    reason = f" ({first.reason})" if first.reason else ""
    message = f"`{rule.name}` is violated {where(first)}{others}, and the test does not list it"
    span = next(
        (each.span for each in test_run.test.outcomes if each.rule == rule.qualified),
        test_run.test.span,
    )
    return Diagnostic(
        "TS0600", message, span, test_run.test.source, hint=f"{where(first)}{reason}{read}"
    )


def where(decided: Decision) -> str:
    """`at step 3 on rank 1 for "w"`."""
    ranks = decided.instance.ranks
    word = "rank" if len(ranks) == 1 else "ranks"
    on = f" on {word} {', '.join(map(str, ranks))}"
    named = ", ".join(decided.instance.subjects)
    return f"at step {decided.step}{on}" + (f' for "{named}"' if named else "")


def _listed(steps: Sequence[int]) -> str:
    return listed([str(step) for step in steps], SHOWN)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"
