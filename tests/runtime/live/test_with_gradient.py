"""Which parameters have a gradient when their optimizer updates them."""

from __future__ import annotations

import copy

import torch

from tspec.runtime.live.updates.gradients import UpdatedWithGradient


def updated(known: UpdatedWithGradient, *parameters: torch.Tensor, optimizer: int = 0) -> list[int]:
    """An update of the parameters, and what is then known of each."""
    known.before_update(optimizer, parameters)
    known.after_update(optimizer, parameters)
    return known.updates_without(parameters)


def parameter(gradient: bool, trained: bool = True) -> torch.nn.Parameter:
    """A parameter with or without a gradient."""
    made = torch.nn.Parameter(torch.ones(2), requires_grad=trained)
    made.grad = torch.ones(2) if gradient else None
    return made


def test_updates_in_a_row_are_counted_until_there_is_a_gradient() -> None:
    known, used, unused = UpdatedWithGradient(), parameter(True), parameter(False)
    assert [updated(known, used, unused) for _ in range(2)] == [[0, 1], [0, 2]]
    unused.grad = torch.ones(2)
    assert updated(known, used, unused) == [0, 0]
    unused.grad = None
    assert updated(known, used, unused) == [0, 1]


def test_a_frozen_parameter_does_not_wait_for_a_gradient() -> None:
    known, frozen = UpdatedWithGradient(), parameter(False, trained=False)
    assert updated(known, frozen) == [0]
    frozen.requires_grad_()
    assert updated(known, frozen) == [1]
    frozen.requires_grad_(False)
    assert updated(known, frozen) == [0]


def test_a_gradient_that_a_closure_makes_counts() -> None:
    known, made = UpdatedWithGradient(), parameter(False)
    known.before_update(0, [made])
    made.grad = torch.ones(2)
    known.after_update(0, [made])
    assert known.updates_without([made]) == [0]
    assert made in known


def test_another_optimizer_that_has_the_gradient_ends_the_row() -> None:
    known, shared = UpdatedWithGradient(), parameter(False)
    assert updated(known, shared) == [1]
    shared.grad = torch.ones(2)
    assert updated(known, shared, optimizer=1) == [0]


def passed(known: UpdatedWithGradient, *parameters: torch.Tensor) -> None:
    """A backward pass gives the parameters gradients."""
    for each in parameters:
        each.grad = torch.ones(2)
    known.after_backward()


def test_a_gradient_that_is_taken_away_by_hand_was_there() -> None:
    known, used, taken = UpdatedWithGradient(), parameter(True), parameter(False)
    for _ in range(3):
        passed(known, used, taken)
        taken.grad = None
        assert updated(known, used, taken)[1] <= 1
    assert [updated(known, used, taken)[1] for _ in range(2)] == [2, 3]


def test_a_gradient_that_is_cleared_before_the_update_is_missing() -> None:
    known, used, cleared = UpdatedWithGradient(), parameter(True), parameter(False)
    for number in range(1, 4):
        passed(known, used, cleared)
        known.cleared([cleared])
        cleared.grad = None
        assert updated(known, used, cleared) == [0, number]


def test_parameters_are_not_kept_alive() -> None:
    known, unused = UpdatedWithGradient(), parameter(False)
    updated(known, unused)
    other = copy.copy(unused)
    del unused
    assert known.updates_without([other]) == [0]
    assert not known._without
