"""Inputs whose own gradients are computed."""

import torch
from torch import nn

from tspec.runtime.live.samples.differentiated import differentiates_inputs

MODEL, IMAGES = nn.Linear(4, 4), torch.rand(2, 4)


def test_an_attack_differentiates_its_input() -> None:
    shift = torch.zeros_like(IMAGES).requires_grad_()
    assert differentiates_inputs(MODEL, [shift])
    assert differentiates_inputs(MODEL, [(IMAGES + shift).clamp(0, 1)])


def test_training_does_not() -> None:
    prompt = nn.Parameter(torch.zeros(4))
    assert not differentiates_inputs(MODEL, [IMAGES])
    assert not differentiates_inputs(MODEL, [MODEL(IMAGES).relu()])
    assert not differentiates_inputs(MODEL, [prompt])
    assert not differentiates_inputs(MODEL, [IMAGES + prompt])


def test_a_loss_has_no_parameters() -> None:
    assert not differentiates_inputs(nn.MSELoss(), [torch.zeros(2, requires_grad=True), IMAGES])
