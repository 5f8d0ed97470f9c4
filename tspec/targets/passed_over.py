"""Hooks that pass over calls: they count the instances of a call that no rule reads anything of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tspec.plan.model import Plan, RulePlan
from tspec.targets.bodies import INDENT, comment_of
from tspec.targets.idle import (
    choices_code,
    conditions_of,
    conditions_on_place,
    flag_tested_at_hook,
    lookers_in_windows,
)
from tspec.targets.literals import literal
from tspec.targets.scalars import Scalars
from tspec.targets.windows import window_pattern, window_patterns, windows_on


def pass_lines(plan: Plan, names: dict[int, str], event: str) -> list[str]:
    """The statements of the hook of an event. `names` are the names of the rules' functions."""
    conditions = dict.fromkeys(
        Scalars(plan, one, window="").code(guard, "now")
        for one, guard in conditions_of(plan, event)
    )
    lines = []
    if windows := lookers_in_windows(plan, event):
        lines += [f"if tracker.is_open({literal(windows)}):", f"{INDENT}return False"]
    lines += [*_rests(plan, event), "now = tracker.instant(source, call.context)"]
    for condition in conditions:
        lines += [f"if {condition} is not False:", f"{INDENT}return False"]
    if not all(map(flag_tested_at_hook, windows_on(plan, event))):
        lines.append("tracker.in_forward(call, now)")
    shared = _shared_choices(windows_on(plan, event))
    lines += [f"{name} = {code}" for code, name in shared.items()]
    for number in window_patterns(plan, event):
        lines.append(f"w = tracker.passed(call, now, P{number})")
        for one in _of_pattern(plan, event, number):
            lines.append(f"# {comment_of(one.rule)}")
            if code := choices_code(one):
                lines.append(f"tracker.idle_passed(w, {one.number}, {shared.get(code, code)})")
            else:
                lines.append(f"tracker.run_passed(w, {one.number}, {names[one.number]})")
    lines.append("return True")
    return lines


def _of_pattern(plan: Plan, event: str, number: int) -> list[RulePlan]:
    """The rules whose windows are calls of an event, by this pattern."""
    return [one for one in windows_on(plan, event) if window_pattern(plan, one) == number]


def _shared_choices(rules: list[RulePlan]) -> dict[str, str]:
    """Python for choices that several rules have, with the variable that holds them."""
    counts = Counter(choices_code(one) for one in rules)
    several = [code for code, count in counts.items() if "now." in code and count > 1]
    return {code: f"c{place}" for place, code in enumerate(several)}


def _rests(plan: Plan, event: str) -> Iterator[str]:
    """Conditions on the place alone, evaluated once between two boundaries."""
    conditions = dict.fromkeys(
        Scalars(plan, one, window="").code(guard, "now")
        for one, guard in conditions_on_place(plan, event)
    )
    if not conditions:
        return
    yield "rests = tracker.rests(call)"
    yield "if rests is None:"
    yield f"{INDENT}now = tracker.instant(source, call.context)"
    for place, each in enumerate(conditions):
        yield f"{INDENT}rests = {'rests and ' if place else ''}{each} is False"
    yield f"{INDENT}tracker.keep_rest(call, rests)"
    yield "if rests:"
    for number in window_patterns(plan, event):
        found = _of_pattern(plan, event, number)
        rules = " ".join(f"({one.number}, {choices_code(one)})," for one in found)
        yield f"{INDENT}tracker.idle_all(call, source, P{number}, ({rules}))"
    yield f"{INDENT}return True"
