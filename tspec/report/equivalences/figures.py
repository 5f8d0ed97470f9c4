"""Plots of errors against the place of tensors in the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from tspec.equivalence.compare import TensorComparison
from tspec.equivalence.sides import settings_text
from tspec.equivalence.verdicts import Verdict
from tspec.report.figures import Curve, Figure

FIGURES = (
    ("Activations: inputs and outputs of modules", ("inputs", "outputs", "losses")),
    ("Gradients", ("input_grads", "output_grads", "param_grads", "gradient_norms")),
    ("Parameters after the step", ("params", "buffers")),
    ("States of the optimizer", ("states",)),
)


def figures(verdict: Verdict) -> Iterator[Figure]:
    """The errors of tensors against their place in the run, as multiples of their dtype's epsilon (TTrace, figure 9)."""
    outcome, localized = verdict.outcome, verdict.localized
    if outcome is None:
        return
    swept = settings_text(verdict.trial.swept)
    alone = {each.name: each for each in localized.comparisons} if localized else {}
    for title, kinds in FIGURES:
        found = [each for each in outcome.comparisons if each.name.kind in kinds and each.epsilon]
        if not found:
            continue
        curves = [
            _curve("the candidate", found, "values"),
            Curve(
                "tolerated", tuple(each.tolerated / each.epsilon for each in found), role="limit"
            ),
        ]
        if alone and kinds[0] not in ("params", "states"):
            again = [alone.get(each.name) for each in found]
            curves.append(_curve("with the reference's inputs and gradients", again, "others"))
        places = tuple(str(each.name) for each in found)
        yield Figure(
            f"{title}, {swept}" if swept else title,
            "error as a multiple of epsilon",
            places,
            tuple(curves),
        )


def _curve(
    name: str, of: Sequence[TensorComparison | None], role: Literal["values", "others"]
) -> Curve:
    values = tuple(None if each is None else each.error / each.epsilon for each in of)
    marked = frozenset(i for i, each in enumerate(of) if each is not None and each.differs)
    return Curve(name, values, marked, role)
