"""What a finding says of its claim: the reason, or the values that were read instead."""

from tspec.values import observed

CLAIM = "expected finite(p.grad) or step < 3"


def test_values_that_were_read_follow_the_claim() -> None:
    read = {"finite(p.grad)": "false", "step": "7"}
    assert observed(CLAIM, "", read) == f"{CLAIM}, but finite(p.grad) = false, step = 7"


def test_a_condition_that_is_the_entire_claim_is_said_once() -> None:
    read = {"finite(p.grad)": "false"}
    assert observed("expected finite(p.grad)", "", read) == "expected finite(p.grad)"


def test_a_reason_stands_for_the_claim() -> None:
    assert observed(CLAIM, "rank 1 has no such parameter", {}) == "rank 1 has no such parameter"
    found = observed(CLAIM, "the shapes differ", {"step": "7"})
    assert found == "the shapes differ (step = 7)"
