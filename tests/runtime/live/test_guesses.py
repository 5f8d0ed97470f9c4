"""Losses that are compared with the best answer that does not depend on the inputs."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tspec.runtime.live.losses.guesses import EVERY, Guesses

LABELS = torch.arange(64) % 4
VALUES = torch.linspace(0, 1, 64)


def classes(guesses: Guesses, logits: Tensor, labels: Tensor = LABELS) -> int:
    loss = F.cross_entropy(logits, labels)
    return guesses.unbeaten_classes(logits, labels, loss, None, -100, "mean")


def logits(guesses: Guesses, given: Tensor, labels: Tensor = VALUES) -> int:
    loss = F.binary_cross_entropy_with_logits(given, labels)
    return guesses.unbeaten_logits(given, labels, loss, None, None, "mean")


def squares(guesses: Guesses, given: Tensor, values: Tensor = VALUES) -> int:
    return guesses.unbeaten_squares(given, values, F.mse_loss(given, values), None, "mean")


CONSTANT = {
    classes: torch.zeros(64, 4),
    logits: torch.zeros(64),
    squares: torch.full((64,), 0.5),
}
INFORMED = {
    classes: 0.1 * F.one_hot(LABELS).float(),
    logits: 0.1 * VALUES - 0.05,
    squares: 0.1 * VALUES + 0.45,
}


@pytest.mark.parametrize("kind", CONSTANT)
def test_constant_answers_are_counted_until_one_uses_its_inputs(kind) -> None:
    guesses, constant = Guesses(), CONSTANT[kind].requires_grad_()
    found = [kind(guesses, constant) for _ in range(3 * EVERY)]
    assert found[EVERY - 2 :: EVERY] == [0, 1, 2]
    assert found[-1] == 3
    informed = INFORMED[kind].requires_grad_()
    assert [kind(guesses, informed) for _ in range(EVERY)][-1] == 0


def test_a_loss_that_falls_from_far_above_the_constants_is_not_counted() -> None:
    guesses, wrong = Guesses(), 50.0 * F.one_hot((LABELS + 1) % 4)
    sizes = [1.0, 0.8, 0.6, 0.4, 0.2] + 4 * [0.1]
    found = [
        [classes(guesses, (size * wrong).requires_grad_()) for _ in range(EVERY)][-1]
        for size in sizes
    ]
    assert found == [1, 0, 0, 0, 0, 0, 1, 2, 3]


def test_losses_that_no_constant_answer_fits_are_not_read() -> None:
    guesses = Guesses()
    one, many = torch.zeros(64, dtype=torch.int64), torch.arange(64)
    for labels in (one, many, F.one_hot(LABELS).float()):
        given = torch.zeros(64, 64 if labels is many else 4, requires_grad=True)
        assert {classes(guesses, given, labels) for _ in range(EVERY)} == {0}
    evaluated = torch.zeros(64, 4)
    assert {classes(guesses, evaluated) for _ in range(EVERY)} == {0}
    weighted, loss = torch.zeros(64, requires_grad=True), torch.ones((), requires_grad=True)
    for _ in range(EVERY):
        assert guesses.unbeaten_squares(weighted, VALUES, loss, torch.ones(64), "mean") == 0


def test_answers_of_other_shapes_are_counted_separately() -> None:
    guesses, odd = Guesses(), LABELS % 2
    for _ in range(EVERY):
        classes(guesses, torch.zeros(64, 4, requires_grad=True))
        found = classes(guesses, torch.zeros(64, 2, requires_grad=True), odd)
    assert found == 1
    for _ in range(EVERY):
        found = classes(guesses, INFORMED[classes].requires_grad_())
    assert found == 1


def test_labels_count_with_the_weights_of_their_classes_and_sums_are_not_read() -> None:
    weight = torch.tensor([10.0, 1.0, 1.0, 1.0])
    best = (weight / weight.sum()).log().expand(64, 4).clone().requires_grad_()
    loss = F.cross_entropy(best, LABELS, weight)
    better = (best.detach() + 0.2 * F.one_hot(LABELS)).requires_grad_()
    less = F.cross_entropy(better, LABELS, weight)
    guesses = Guesses()

    def last(given: Tensor, loss: Tensor, reduction: str) -> int:
        found = [
            guesses.unbeaten_classes(given, LABELS, loss, weight, -100, reduction)
            for _ in range(EVERY)
        ]
        return found[-1]

    assert last(best, loss, "mean") == 1
    assert last(best, 64 * loss, "sum") == 1
    assert last(better, less, "mean") == 0
