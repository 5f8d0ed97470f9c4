"""TS0430: a group in which each subject is on one rank only."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Axis, For, Rule, Subjects
from tspec.resolve.program.types import Entity

_OF_LAYERS = frozenset({"parameter", "buffer", "state", "module"})
_STAGES = "pp"


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        if rule.across != (Axis(_STAGES),):
            continue
        subject = next((each for each in rule.subjects if _is_of_a_layer(each)), None)
        if subject is None or _names_shared(rule):
            continue
        plural = "entities" if not isinstance(subject.collection, Subjects) else "these"
        message = (
            f"the ranks of `{_STAGES}` hold different layers: each of {plural} is on one of them, "
            "so that nothing is compared"
        )
        hint = "compare over `dp`, `tp` or `p.replicas`; fold over all of a rank without `for`"
        yield about(rule, message, rule.spans.across, hint)


def _is_of_a_layer(clause: For) -> bool:
    found = clause.collection
    return (
        isinstance(found, Subjects)
        and not found.filters
        and isinstance(found.type.item if hasattr(found.type, "item") else None, Entity)
        and found.kind in _OF_LAYERS
    )


def _names_shared(rule: Rule) -> bool:
    """Tied tensors are on two stages; a condition or filter picks them."""
    return rule.when is not None


RULE = LintRule("TS0430", "subject-not-in-group", check)
