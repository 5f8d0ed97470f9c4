"""The flags of a window that make its instances idle, as a hook tests and sets them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tspec.plan.events import is_windows_call
from tspec.plan.model import Plan, RulePlan
from tspec.resolve.program import rules as r
from tspec.targets.bodies import INDENT
from tspec.targets.idle import Flag
from tspec.targets.literals import literal
from tspec.targets.scalars import Scalars


@dataclass(frozen=True, slots=True)
class Guards:
    """The guards of the rules at one hook. A guard of several rules is evaluated once, before them."""

    plan: Plan
    shared: Mapping[str, str]
    """Python for a guard of several rules -> the variable that holds its value."""

    def statements(self) -> Iterator[str]:
        """The statements that evaluate the shared guards."""
        return (f"{variable} = {code}" for code, variable in self.shared.items())

    def code(self, one: RulePlan) -> str:
        """Python for the value of a rule's guard."""
        code = _guard(self.plan, one)
        return self.shared.get(code, code)


def guards_of(plan: Plan, rules: Iterable[RulePlan]) -> Guards:
    """The guards of some rules."""
    counts = Counter(_guard(plan, one) for one in rules if one.guard is not None)
    several = (code for code, count in counts.items() if count > 1)
    return Guards(plan, {code: f"g{place}" for place, code in enumerate(several)})


def _guard(plan: Plan, one: RulePlan) -> str:
    """Python for the part of a condition that reads context and the call alone. It does not wait for
    context that a device still has.
    """
    assert one.guard is not None
    own = {c.variable: "e.call" for c in one.rule.subjects if is_windows_call(c, one.rule)}
    return Scalars(plan, one, own, window="e", waiting=False).code(one.guard, "e.now")


def flags_of(one: RulePlan) -> list[Flag]:
    """The flags that a rule's windows may have."""
    across = [Flag.UNGROUPED] if one.rule.across else []
    return [*across, Flag.IDLE] if one.guard is not None else across


def flag_tests(one: RulePlan, guards: Guards, flags: Collection[Flag]) -> dict[Flag, str]:
    """Python for the value of each flag. Flags that the rule's windows never have are left out."""
    tests = {}
    for flag in flags_of(one):
        if flag in flags:
            tests[flag] = _ungrouped(one) if flag is Flag.UNGROUPED else _idle(one, guards)
    return tests


def _ungrouped(one: RulePlan) -> str:
    """Python code that is true if this rank has no group for a rule."""
    return f"not tracker.has_group(e, {one.number}, {literal(axes_across(one.rule))})"


def _idle(one: RulePlan, guards: Guards) -> str:
    """Python code that is true if a rule's condition is false whatever the state is."""
    idle = f"{guards.code(one)} is False"
    return f"tracker.rules[{one.number}].begun and {idle}" if one.history else idle


def axes_across(rule: r.Rule) -> tuple[str, ...]:
    """The axes of a rule that looks across axes only; none where a field names the group."""
    names = tuple(axis.name for axis in rule.across if isinstance(axis, r.Axis))
    return names if len(names) == len(rule.across) else ()


def set_flags(window: str, tests: Mapping[Flag, str], indent: str) -> Iterator[str]:
    """Lines that set the flags of a window. If it has no group, its condition is not read."""
    for flag, test in tests.items():
        grouped = flag is Flag.IDLE and Flag.UNGROUPED in tests
        unless = f"not {window}.{Flag.UNGROUPED} and " if grouped else ""
        yield f"{indent}{window}.{flag} = {unless}{test}"


def unless_flagged(
    window: str, flags: Collection[Flag], lines: Iterable[str], indent: str
) -> Iterator[str]:
    """Lines that are left out in an idle window."""
    lines = list(lines)
    if not lines:
        return
    if flags:
        said = " or ".join(f"{window}.{flag}" for flag in flags)
        yield f"{indent}if not ({said}):" if len(flags) > 1 else f"{indent}if not {said}:"
        indent += INDENT
    yield from (indent + line for line in lines)
