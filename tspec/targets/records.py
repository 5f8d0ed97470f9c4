"""The records of rules and of their actions, as calls in generated code."""

from __future__ import annotations

from dataclasses import asdict

from tspec.builtin.kinds import PASSING
from tspec.plan.model import Plan, RulePlan
from tspec.resolve.program import rules as r
from tspec.resolve.program.failures import failure
from tspec.targets.flags import axes_across
from tspec.targets.literals import literal
from tspec.targets.settled import settled_over


def record_code(plan: Plan, one: RulePlan, text: str) -> str:
    """Python that makes the record of a rule; `text` explains the rule."""
    rule, window = one.rule, one.rule.window
    every = None if window.every is None else (window.every.count, window.every.unit)
    responses = "".join(f"{_response(each)}, " for each in rule.responses).rstrip()
    position = rule.source.position(rule.span.start)
    values = {
        "number": one.number,
        "name": rule.qualified,
        "file": rule.source.path,
        "line": position.line,
        "text": text,
        "draft": rule.draft,
        "kind": window.kind,
    }
    head = ", ".join(f"{name}={literal(value)}" for name, value in values.items())
    tail = {
        "claim": failure(rule),
        "every": every,
        "span": window.span,
        "once": window.once,
        "across": bool(rule.across),
        "connected": len(rule.across) > 1 and axes_across(rule) != (),
        "early": isinstance(rule.expect, (r.Contains, r.Ordered)),
        "when": rule.when is not None,
        "history": one.history,
        "over": settled_over(plan, one),
        "counts": tuple(sorted({event for each in one.counted for event in each.events})),
        "passing": tuple(sorted({kind for _, kind in one.reads.kinds if kind in PASSING})),
        "postponed": _postponed(one) if one.postponable else None,
    }
    said = {
        name: value for name, value in tail.items() if value or (name == "over" and value == ())
    }
    rest = ", ".join(f"{name}={literal(value)}" for name, value in said.items())
    return f"RuleRecord({head}, responses=({responses}){', ' if rest else ''}{rest})"


def _postponed(one: RulePlan) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """What is sampled of a rule that is postponed, besides columns."""
    fields = tuple(sorted({each.name for each in one.reads.call_fields}))
    return *one.reads.context("now"), fields


def _response(response: r.Response) -> str:
    said = {name: value for name, value in asdict(response.record).items() if value is not None}
    return f"ActionRecord({', '.join(f'{name}={literal(value)}' for name, value in said.items())})"
