"""*Learning*: the loss decreases as far as in sound runs by the same step, and no further.

Labels of other samples, a wrong scale and layers that learn nothing show only in a loss that stays.
A label that leaks into the inputs shows only in a loss that falls too fast. Bounds are wide: a run
with a worse seed is sound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from tspec.infer.heads import Claim, RuleHead
from tspec.infer.survey import Survey

OVER = 10
"""The number of steps over which losses are averaged. Losses of single batches scatter."""
FIRST = 3
"""The number of steps whose loss is that of the initial weights."""
LEAST_STEPS = 40
"""The least number of steps of a run. Shorter runs tell little about the decrease of a loss."""
APART = 2.0
"""The allowed distance of a run from sibling runs, relative to the distance between two of these.
For first losses also the distance of their logarithms.
"""
OF_PROGRESS = 0.25
"""Allowed deviation of the loss decrease since the first steps, or since the highest mean before, as a
fraction of it.
"""
OF_FIRST = 0.05
"""The part of the first loss by which losses may differ."""
OF_SIZE = 0.4
"""The part of the largest of the first losses by which they may differ."""

HIGHER = (
    "The loss has not come down as in sound runs: labels or inputs do not belong together, layers are not trained, or a"
    " term of the loss is another one."
)
LOWER = (
    "The loss is far below that of sound runs: the answer leaks into the inputs, a mask lets it through, or what is hard"
    " is not counted."
)
SCALE = (
    "The first losses are of another size than in sound runs: inputs or first weights have another scale, or the loss is"
    " summed, divided or weighed otherwise."
)


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Bounds on the loss in the first steps, and on its mean in spans of later steps. Each span is twice as long as the last."""
    losses = survey.numbers.losses
    if len(losses) < 2 or "loss" not in survey.ambient:
        return ()
    shortest = min(map(len, losses))
    if shortest < LEAST_STEPS or not all(math.isfinite(x) for run in losses for x in run):
        return ()
    head = RuleHead((), None, "each step", ())
    first = [x for run in losses for x in run[:FIRST]]
    return (
        *_first(head, first),
        *_later(head, losses, sum(first) / len(first), shortest),
    )


def _first(head: RuleHead, first: Sequence[float]) -> Iterator[Claim]:
    low, high = min(first), max(first)
    margin = max(APART * (high - low), OF_SIZE * max(abs(low), abs(high)))
    lowest, highest = low - margin, high + margin
    if low > 0:  # losses that differ by a factor may differ by it again
        highest = max(highest, high * (high / low) ** APART)
    expect = f"loss >= {number(lowest)} and loss <= {number(highest)}"
    when = f"step <= {FIRST}"
    yield Claim(
        "learning", head, expect, SCALE, when, surprise=3, name="first_losses_have_their_size"
    )


def _later(
    head: RuleHead, losses: Sequence[Sequence[float]], first: float, shortest: int
) -> Iterator[Claim]:
    means = [
        [sum(run[at - OVER : at]) / OVER for at in range(OVER, shortest + 1)] for run in losses
    ]
    for begin, end in pairwise(_spans(shortest)):
        spans = [run[begin - OVER : end - OVER] for run in means]
        low, high = min(map(min, spans)), max(map(max, spans))
        apart = max(max(at) - min(at) for at in zip(*spans, strict=True))
        mean_loss = sum(map(sum, spans)) / sum(map(len, spans))
        highest = max(max(run[: begin - OVER]) for run in means)
        gained = max(abs(first - mean_loss), highest - mean_loss)
        margin = APART * apart + OF_PROGRESS * gained + OF_FIRST * abs(first)
        mean = f"mean(loss, over: {OVER} steps)"
        when = f"step >= {begin} and step < {end}"
        name = f"from_step_{begin}"
        yield Claim(
            "learning", head, f"{mean} <= {number(high + margin)}", HIGHER, when, surprise=3,
            name=f"losses_have_come_down_{name}",
        )  # fmt: skip
        if low - margin > 0 or low < 0:
            yield Claim(
                "learning", head, f"{mean} >= {number(low - margin)}", LOWER, when, surprise=3,
                name=f"losses_are_not_far_below_{name}",
            )  # fmt: skip


def _spans(shortest: int) -> list[int]:
    """The first steps of the spans, and the step after the last one."""
    begins, begin = [], 2 * OVER
    while begin + 2 * OVER <= shortest:
        begins.append(begin)
        begin *= 2
    return [*begins, shortest + 1]


def number(value: float) -> str:
    """A number of the language with three digits."""
    return repr(float(f"{value:.3g}"))
