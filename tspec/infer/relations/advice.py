"""*Advice*: the rules of `std.advice` that type in the vocabulary of the recordings and held in all
runs.

A job that deliberately does otherwise has runs that show it.
"""

from __future__ import annotations

from functools import cache

from tspec.infer.candidates import resolve_each
from tspec.infer.heads import Claim, RuleHead, invariant
from tspec.infer.main_copies import are_kept
from tspec.infer.survey import Survey
from tspec.resolve.program.documentation import explanation
from tspec.resolve.program.queries import claimed
from tspec.resolve.program.rules import Constant, Expr, Feature, Field, Rule
from tspec.resolve.program.walk import expressions
from tspec.resources import shipped

VOCABULARY = ("std.torch",)

FOLLOW = "copies_follow_what_is_trained"
"""Rules of advice that are about long runs only. With several runs, short ones can be compared too.
"""
STALE = (
    "A model that began as a copy of the trained one and no longer follows it answers as at the start: its average, or its"
    " target network, is never updated."
)


def propose(survey: Survey) -> tuple[Claim, ...]:
    """The shipped advice for the events that were seen, and that copies of trained models follow
    them, however short the run.

    The advice is about torch's optimizers; nothing is proposed for a framework with its own update.
    """
    if are_kept(survey) or survey.event("optimizer.step") is None:
        return ()
    return (*(each for each in _advised() if each.name != FOLLOW), _copies_follow())


@cache
def _advised() -> tuple[Claim, ...]:
    from tspec.resolve import load

    loaded = load([shipped("stdlib") / "advice.tspec"])
    if loaded.program is None:
        raise ValueError(f"std.advice does not resolve: {loaded.diagnostics}")
    claims = {rule.name: _claim(rule) for rule in loaded.program.rules if not _is_a_setting(rule)}
    blocks = {
        name: invariant(name, claim.head, claim.expect, claim.guard)
        for name, claim in claims.items()
    }
    typed, _ = resolve_each(blocks, VOCABULARY)
    return tuple(claims[rule.name] for rule in typed)


def _is_a_setting(rule: Rule) -> bool:
    """True if the rule has a threshold, which is an opinion on numbers, or a device, which is a
    choice of hardware. Other runs tell nothing about either.
    """
    said = (*claimed(rule.expect), *(() if rule.when is None else (rule.when,)))
    return any(
        _is_threshold(each) or _reads_device(each) for part in said for each in expressions(part)
    )


def _is_threshold(expr: Expr) -> bool:
    return (
        isinstance(expr, Constant)
        and isinstance(expr.value, (int, float))
        and expr.value not in (0, 1)
    )


def _reads_device(expr: Expr) -> bool:
    return isinstance(expr, (Field, Feature)) and expr.name == "device"


def _claim(rule: Rule) -> Claim:
    """A rule as a claim, in its own words."""
    spans, said = rule.spans, rule.source.slice
    head = RuleHead(
        tuple(said(each).removeprefix("for ") for each in spans.subjects),
        ", ".join(map(said, spans.groups)) or None,
        said(spans.window) if spans.window else None,
        (),
    )
    when = said(spans.condition) if spans.condition else None
    expect = said(spans.claim) if spans.claim else ""
    return Claim("advice", head, expect, explanation(rule.doc), when, surprise=3, name=rule.name)


def _copies_follow() -> Claim:
    began_alike = "first(digest(m.parameters.data)) == first(digest(n.parameters.data))"
    return Claim(
        "advice",
        RuleHead(("m in models", "n in models"), None, "each run", ()),
        "digest(m.parameters.data) != first(digest(m.parameters.data))",
        STALE,
        "count(m.parameters) > 0 and count(m.parameters.group) == 0"
        f" and count(n.parameters.group) > 0 and {began_alike}",
        surprise=3,
        name=FOLLOW,
    )
