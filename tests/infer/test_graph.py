"""How losses are computed: drafts of the operations that runs had in common, and none of what differs between them."""

from tspec.infer import STANDARD
from tspec.infer.drafts import Draft
from tspec.infer.relations.graph import propose
from tspec.infer.survey import Survey
from tspec.infer.typed import keep_typed

ONE = frozenset({"loss <- mean", "mean <- softmax(-1)", "softmax(-1) <- addmm"})
OTHER = frozenset({"loss <- neg", "neg <- mean", "mean <- softmax(-1)", "softmax(-1) <- addmm"})
DROPPED = ONE | {"addmm <- mul"}


def drafts(*graphs: frozenset[frozenset[str]]) -> dict[str | None, str]:
    """Name -> the clause that lists operations."""
    survey = Survey((), (), (), (), frozenset(), 40, graphs)
    claims = propose(survey)
    typed, ill_typed = keep_typed([Draft(claim, claim.guard, 9, 0) for claim in claims], STANDARD)
    assert ill_typed == ()
    assert len(typed) == len(claims)
    return {
        claim.name: next((s for s in claim.head.subjects if "[" in s), claim.expect)
        for claim in claims
    }


def test_one_way_to_compute_a_loss() -> None:
    found = drafts(frozenset({ONE}), frozenset({ONE}))
    listed = '"loss <- mean", "mean <- softmax(-1)", "softmax(-1) <- addmm"'
    assert found == {
        "losses_are_computed_by_known_operations": f"o in [{listed}]",
        "losses_keep_their_operations": f"o in [{listed}]",
    }


def test_an_operation_that_is_missing_is_a_subject_of_its_own() -> None:
    kept = propose(Survey((), (), (), (), frozenset(), 40, (frozenset({ONE}),)))[1]
    assert kept.name == "losses_keep_their_operations"
    assert kept.expect == "o in c.operations"


def test_two_losses_that_take_turns_are_each_whole() -> None:
    found = drafts(frozenset({ONE, OTHER}), frozenset({OTHER, ONE}))
    assert list(found) == [
        "losses_are_computed_by_known_operations",
        "losses_are_computed_in_known_ways",
    ]
    assert found["losses_are_computed_in_known_ways"].count(" or ") == 1


def test_an_operation_that_no_run_had_is_left_to_the_rule_that_names_it() -> None:
    """Whole losses are judged only if all their operations are known."""
    kinds = frozenset({ONE, OTHER})
    claims = {
        each.name: each for each in propose(Survey((), (), (), (), frozenset(), 40, (kinds,)))
    }
    listed = ", ".join(f'"{each}"' for each in sorted(ONE | OTHER))
    guard = claims["losses_are_computed_in_known_ways"].guard
    assert guard == f"count(c.operations) > 0 and c.operations in {{{listed}}}"


def test_of_runs_that_differ_only_what_is_common_is_said() -> None:
    assert list(drafts(frozenset({ONE}), frozenset({DROPPED}))) == ["losses_keep_their_operations"]


def test_of_losses_with_nothing_in_common_nothing_is_said() -> None:
    assert drafts(frozenset({ONE}), frozenset({frozenset({"loss <- sum"})})) == {}


def test_a_run_of_which_no_graph_is_known_says_nothing() -> None:
    assert drafts(frozenset({ONE}), frozenset()) == {}
    assert drafts() == {}
