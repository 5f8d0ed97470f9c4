"""The `///` of a rule: what it explains, and what to look at."""

from tspec.resolve.program.documentation import explanation, hint


def test_a_hint_is_a_paragraph_of_its_own() -> None:
    doc = (
        "Gradients are left over\nfrom before.\n\nLook at: where the loop\nclears them.\n\nOr not."
    )
    assert explanation(doc) == "Gradients are left over from before."
    assert hint(doc) == "where the loop clears them."


def test_a_sentence_within_a_paragraph_is_no_hint() -> None:
    doc = "It is read once. Look at: nothing."
    assert (explanation(doc), hint(doc)) == (doc, "")
    assert (explanation(""), hint("")) == ("", "")
