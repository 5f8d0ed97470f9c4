"""*Graph*: the operations in autograd's graph by which losses are computed."""

from __future__ import annotations

from collections.abc import Iterable

from tspec.infer.heads import Claim, RuleHead
from tspec.infer.survey import Survey
from tspec.syntax.strings import quote

MOST_KINDS = 3
"""A job with more different losses chooses among parts of its model."""

NEW = (
    "The loss is computed in another way than in sound runs: over another dimension, with axes in another order, by"
    " an activation more or less, or with something that has no gradient any more."
)
OTHER = (
    "Something is missing in the computation of the loss that sound runs have, or was added to it."
)
LESS = "An operation is missing in the computation of the loss that sound runs have."


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Claims that losses are computed by exactly the operations that all runs had. If runs differ, the claims are about the operations that they have in common."""
    if not all(survey.graphs) or not survey.graphs:
        return ()
    kinds = frozenset().union(*survey.graphs)
    claims = []
    if len({frozenset().union(*each) for each in survey.graphs}) == 1:
        each = RuleHead(("c in calls(backward)", "o in c.operations"), None, None, ())
        known = ", ".join(_quoted(frozenset().union(*kinds)))
        name = "losses_are_computed_by_known_operations"
        claims.append(Claim("graph", each, f"o in [{known}]", NEW, None, 3, name=name))
    whole = RuleHead(("c in calls(backward)",), None, None, ())
    read = "count(c.operations) > 0"
    common = frozenset.intersection(*kinds)
    if len(set(survey.graphs)) == 1 and 1 < len(kinds) <= MOST_KINDS:
        expect = " or ".join(
            f"({_set(kind)} in c.operations and c.operations in {_set(kind)})"
            for kind in sorted(kinds, key=sorted)
        )
        # An operation that no run had is named by the rule above.
        known = f"{read} and c.operations in {_set(frozenset().union(*kinds))}"
        name = "losses_are_computed_in_known_ways"
        claims.append(Claim("graph", whole, expect, OTHER, known, 3, name=name))
    elif common:
        # One instance for each operation, so that a finding names the one that is missing.
        name = "losses_keep_their_operations"
        needed = f"o in [{', '.join(_quoted(common))}]"
        each = RuleHead(("c in calls(backward)", needed), None, None, ())
        claims.append(Claim("graph", each, "o in c.operations", LESS, read, 3, name=name))
    return tuple(claims)


def _set(operations: Iterable[str]) -> str:
    return f"{{{', '.join(_quoted(operations))}}}"


def _quoted(operations: Iterable[str]) -> list[str]:
    return [quote(each) for each in sorted(operations)]
