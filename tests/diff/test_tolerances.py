"""Which of two tolerances allows more, against what they allow in numbers."""

from __future__ import annotations

import random

from tspec.diff.declarations.tolerances import order
from tspec.equivalence.tolerances import Allowed, allowed, number
from tspec.resolve.program.trials import (
    DEFAULT_SAMPLES,
    Absolute,
    Combined,
    Noise,
    Number,
    Relative,
    Tolerance,
    Ulp,
)

FACTORS = (1e-6, 1e-5, 2.0, 3.0)


def some(draw: random.Random, depth: int = 2) -> Tolerance:
    """A tolerance as `within` may say it."""
    kinds = ["number", "ulp", "noise", "noise"]
    kinds += ["relative", "absolute", "sum", "multiple", "part"] * (depth > 0)
    match draw.choice(kinds):
        case "number":
            return Number(draw.choice(FACTORS))
        case "ulp":
            return Ulp(draw.choice(("float32", "bfloat16")))
        case "noise":
            floor = draw.choice((None, Number(1e-5), Ulp("bfloat16")))
            perturb = draw.choice((None, None, Number(1e-4)))
            return Noise(perturb, draw.choice((None, 2, 3, 5)), floor)
        case "relative":
            return Relative(some(draw, 0))
        case "absolute":
            return Absolute(some(draw, 0))
        case "sum":
            return Combined("+", some(draw, depth - 1), some(draw, depth - 1))
        case "part":
            return Combined("/", some(draw, depth - 1), Number(draw.choice(FACTORS)))
    return Combined("*", Number(draw.choice(FACTORS)), some(draw, depth - 1))


def moved(seed: int, noise: Noise) -> float:
    """A noise of some tensor: the furthest of its samples, at least its floor."""
    of = random.Random(f"{seed} {noise.perturb}")
    samples = [of.uniform(1e-8, 1e-2) for _ in range(noise.samples or DEFAULT_SAMPLES)]
    return max(*samples, 1e-7 if noise.floor is None else number(noise.floor))


def numbers(tolerance: Tolerance, seed: int) -> Allowed:
    return allowed(tolerance, lambda noise: moved(seed, noise))


def test_what_is_said_of_two_tolerances_holds_for_all_tensors() -> None:
    draw = random.Random(0)
    said = dict.fromkeys(("equivalent", "loosened", "tightened", "changed"), 0)
    for _ in range(3000):
        old = some(draw)
        new = old if draw.random() < 0.1 else some(draw)
        way = order(old, new)
        said[way] += 1
        assert order(new, old) == {"loosened": "tightened", "tightened": "loosened"}.get(way, way)
        for seed in range(4):
            before, after = numbers(old, seed), numbers(new, seed)
            pairs = ((before.relative, after.relative), (before.absolute, after.absolute))
            for less, more in pairs:
                slack = 1e-12 * max(less, more)
                assert way not in ("loosened", "equivalent") or less <= more + slack, (old, new)
                assert way not in ("tightened", "equivalent") or more <= less + slack, (old, new)
    assert min(said.values()) > 200  # each was tried


def test_samples_that_are_not_said_are_the_usual_ones() -> None:
    assert order(Noise(), Noise(samples=DEFAULT_SAMPLES)) == "equivalent"
    assert order(Noise(), Noise(samples=DEFAULT_SAMPLES + 1)) == "loosened"


def test_a_product_of_noises_is_the_same_or_another() -> None:
    square = Combined("*", Noise(), Noise())
    assert (order(square, square), order(square, Noise())) == ("equivalent", "changed")
