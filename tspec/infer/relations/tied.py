"""*Tied*: models hold one tensor under several names, as for the first and the last layer of a language model."""

from __future__ import annotations

from tspec.infer.heads import EVERY, Claim, RuleHead
from tspec.infer.survey import Survey


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Claims, if there are more names of parameters than parameters."""
    kind = survey.kind("parameter")
    if kind is None or "names" not in kind.fields:
        return ()
    head = RuleHead((), None, f"each step {EVERY}", ())
    untied = "Layers that share a tensor in sound runs have one each, and drift apart."
    expect = "count(parameters.names) > count(parameters)"
    return (Claim("tied", head, expect, untied, surprise=3),)
