"""Bounds of losses and of what models are given: wide enough for another seed, and only where runs agree."""

import math
import random
import re

import pytest
import torch

from tspec.infer.heads import Claim
from tspec.infer.numbers import Extent, GivenTensor, RecordedNumbers
from tspec.infer.relations import learning, ranges
from tspec.infer.survey import Survey


def survey(
    losses: tuple[tuple[float, ...], ...] = (), given: tuple[GivenTensor, ...] = ()
) -> Survey:
    return Survey((), (), (), (), frozenset({"loss"}), 100, numbers=RecordedNumbers(losses, given))


def curve(seed: int, steps: int = 100, end: float = 1.0) -> tuple[float, ...]:
    """A loss that comes down from 4 to an end, with noise."""
    draw = random.Random(seed)
    return tuple(
        end + (4 - end) * 0.96**step + draw.uniform(-0.1, 0.1) for step in range(1, steps + 1)
    )


def broken(claims: tuple[Claim, ...], losses: tuple[float, ...]) -> set[str]:
    """The names of the claims that a run breaks, without the step in them."""
    found = set()
    for claim in claims:
        steps = [int(each) for each in re.findall(r"\d+", claim.guard or "")]
        begin, end = (1, steps[0] + 1) if len(steps) == 1 else steps
        over = 10 if "mean" in claim.expect else 1
        for step in range(begin, min(end, len(losses) + 1)):
            value = sum(losses[step - over : step]) / over
            for sign, bound in re.findall(r"([<>])= (\S+)", claim.expect):
                if value > float(bound) if sign == "<" else value < float(bound):
                    found.add(claim.name.partition("_from")[0])
    return found


CLAIMS = learning.propose(survey((curve(0), curve(1))))


def test_another_seed_keeps_the_bounds() -> None:
    assert len(CLAIMS) > 2
    for seed in range(2, 30):
        assert broken(CLAIMS, curve(seed)) == set()


def test_a_loss_that_stays_or_falls_too_far_or_has_another_scale_does_not() -> None:
    assert broken(CLAIMS, curve(2, end=3.0)) == {"losses_have_come_down"}
    leaking = tuple(loss * 0.97**step for step, loss in enumerate(curve(2)))
    assert broken(CLAIMS, leaking) == {"losses_are_not_far_below"}
    scaled = tuple(16 * loss for loss in curve(2))
    assert broken(CLAIMS, scaled) == {"first_losses_have_their_size", "losses_have_come_down"}


def test_first_losses_that_differ_by_a_factor_may_differ_by_it_again() -> None:
    """As those of temporal differences do, whose targets are drawn: here by a factor of 3."""
    apart = learning.propose(survey((curve(0), tuple(3 * loss for loss in curve(1)))))
    assert broken(apart, tuple(8 * loss for loss in curve(2)[:3])) == set()
    [said] = broken(apart, tuple(32 * loss for loss in curve(2)[:3]))
    assert said == "first_losses_have_their_size"


def test_runs_that_learn_differently_bound_little() -> None:
    wide = learning.propose(survey((curve(0), curve(1, end=2.5))))
    assert broken(wide, curve(2, end=3.0)) == set()


def hump(later: int) -> tuple[float, ...]:
    """A loss that rises before it falls to where it began, as that of learned codes does."""
    return tuple(0.5 + 1.3 * math.exp(-(((step - 40 - later) / 30) ** 2)) for step in range(1, 101))


def test_a_loss_that_rises_before_it_falls_may_fall_some_steps_later() -> None:
    claims = learning.propose(survey((hump(0), hump(1))))
    assert broken(claims, hump(6)) == set()
    assert broken(claims, hump(40)) >= {"losses_have_come_down"}


@pytest.mark.parametrize(
    "losses", [(), (curve(0),), (curve(0, 30), curve(1)), (curve(0), (float("nan"), *curve(1)))]
)
def test_nothing_is_said_of_one_run_or_short_ones_or_a_nan(losses: tuple) -> None:
    assert learning.propose(survey(losses)) == ()


def given(std: Extent, mean: float = 0.1) -> GivenTensor:
    """A tensor whose spread lies within bounds, and its mean within `mean` of zero."""
    means, zeros = Extent(-mean, mean), Extent(0.0, 0.01)
    return GivenTensor("forward", "inputs", 0, "train", "Net", means, std, zeros)


def test_a_steady_spread_and_mean_are_bounded_widely() -> None:
    assert ranges._bounds(given(Extent(0.9, 1.1)), "x") == (
        "std(x) >= 0.45 and std(x) <= 2.2 and mean(x) >= -0.575 and mean(x) <= 0.575"
        " and zeros(x) <= 0.12"
    )


def test_what_moves_is_not_bounded() -> None:
    assert ranges._bounds(given(Extent(0.5, 1.1)), "x") is None
    assert ranges._bounds(given(Extent(0.0, 0.0)), "x") is None
    moving = ranges._bounds(given(Extent(0.9, 1.1), 2.0), "x")
    assert moving == "std(x) >= 0.45 and std(x) <= 2.2 and zeros(x) <= 0.12"


def test_the_places_of_samples_in_a_batch_have_the_range_of_its_size() -> None:
    """Targets from 0 to `n - 1`, of batches of 256 and the last of 192."""

    def drawn(*batches: int) -> GivenTensor:
        places = [torch.arange(n).double() for n in batches]
        means, stds = ([f(each) for each in places] for f in (mean, std))
        zeros = Extent(1 / max(batches), 1 / min(batches))
        sizes = Extent(min(means), max(means)), Extent(min(stds), max(stds))
        return GivenTensor("cross_entropy", "target", None, "train", None, *sizes, zeros)

    def mean(tensor: torch.Tensor) -> float:
        return float(tensor.mean())

    def std(tensor: torch.Tensor) -> float:
        return float(tensor.std(correction=0))

    of_their_size = "max(x) == numel(x) - 1 and 2 * mean(x) == numel(x) - 1"
    assert ranges._bounds(drawn(256), "x") == of_their_size
    assert ranges._bounds(drawn(256, 192), "x") == of_their_size
    classes = GivenTensor(
        *("cross_entropy", "target", None, "train", None),
        *(Extent(4.4, 4.6), Extent(2.8, 2.9), Extent(0.08, 0.12)),
    )
    assert ranges._bounds(classes, "x") not in (None, of_their_size)
