"""The clauses of a rule as text, as shown in the parts of a change."""

from __future__ import annotations

from tspec.resolve.program import rules
from tspec.resolve.program.rules import Duration, For, Response, Rule, Window
from tspec.resolve.program.text import pattern_text, text


def duration(found: Duration) -> str:
    """`10 steps`."""
    if found.count == 1:
        return f"1 {found.unit}"
    return f"{found.count} {found.unit}{'es' if found.unit.endswith('batch') else 's'}"


def subjects(clauses: tuple[For, ...]) -> str:
    """`for m in modules for p in m.parameters`."""
    return " ".join(f"for {each.variable} in {text(each.collection)}" for each in clauses)


def group(rule: Rule) -> str:
    """`across dp`, or nothing."""
    names = [
        each.name if isinstance(each, rules.Axis) else text(each.value) for each in rule.across
    ]
    return f"across {', '.join(names)}" if names else ""


def window(found: Window) -> str:
    """`during optimizer.step`, without thinning; nothing where the calls of a `for` are it."""
    if found.kind == "calls":
        return ""
    if found.event is None:
        return f"each {found.span}"
    return f"{found.kind} {pattern_text(found.event)}"


def thinning(found: Window) -> str:
    """`every 10 steps`, `once`, or nothing."""
    if found.once:
        return "once"
    return f"every {duration(found.every)}" if found.every is not None else ""


def when(rule: Rule) -> str:
    """The condition of `when`, or nothing."""
    return "" if rule.when is None else text(rule.when)


def action(responses: tuple[Response, ...]) -> str:
    """`warn, stop after 3 consecutive`."""
    return ", ".join(map(_response, responses))


def _response(found: Response) -> str:
    if found.consecutive is not None:
        return f"{found.action} after {found.consecutive} consecutive"
    if found.frequent is not None and found.among is not None:
        return f"{found.action} after {found.frequent} of {duration(found.among)}"
    return found.action
