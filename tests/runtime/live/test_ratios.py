"""Ratios of probabilities are found in the graph of a loss, and nothing else that is exponentiated."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Bernoulli, Categorical, Independent, Normal

from tspec.runtime.live.losses.ratios import off_ratios

torch.manual_seed(0)
NET, SAMPLES = nn.Linear(4, 3), torch.randn(32, 4)
CHOSEN, ADVANTAGES = torch.randint(3, (32,)), torch.randn(32)


def categorical(samples):
    return Categorical(logits=NET(samples)).log_prob(CHOSEN)


def normal(samples):
    made = Normal(NET(samples), 0.3 * torch.ones(3))
    return made.log_prob(SAMPLES[:, :3]).sum(-1)


def independent(samples):
    return Independent(Normal(NET(samples), torch.ones(3)), 1).log_prob(SAMPLES[:, :3])


def bernoulli(samples):
    return Bernoulli(logits=NET(samples)[:, 0]).log_prob((CHOSEN > 1).float())


def gathered(samples):
    return NET(samples).log_softmax(1).gather(1, CHOSEN[:, None]).squeeze(1)


def indexed(samples):
    return NET(samples).log_softmax(1)[torch.arange(32), CHOSEN]


def negative_loss(samples):
    return -F.cross_entropy(NET(samples), CHOSEN, reduction="none")


LOGARITHMS = [categorical, normal, independent, bernoulli, gathered, indexed, negative_loss]


def clipped(ratio):
    return -torch.min(ratio * ADVANTAGES, ratio.clamp(0.8, 1.2) * ADVANTAGES).mean()


@pytest.mark.parametrize("logarithm", LOGARITHMS)
def test_ratios_of_the_policy_that_decided_are_one(logarithm):
    old = logarithm(SAMPLES).detach()
    assert off_ratios(clipped((logarithm(SAMPLES) - old).exp())) == pytest.approx([0.0], abs=1e-5)


@pytest.mark.parametrize("logarithm", LOGARITHMS)
def test_other_observations_have_other_ratios(logarithm):
    old = logarithm(SAMPLES.flip(0)).detach()
    ratio = torch.exp(logarithm(SAMPLES) - old)
    expected = float((ratio.detach() - 1).abs().max())
    assert off_ratios(clipped(ratio)) == pytest.approx([expected], rel=1e-5)
    assert expected > 0.1


@pytest.mark.parametrize(
    "loss",
    [
        lambda: (NET(SAMPLES) - NET(SAMPLES).max(1, keepdim=True)[0].detach()).exp().sum(),
        lambda: (0.5 * NET(SAMPLES)).exp().sum(),
        lambda: (categorical(SAMPLES) - categorical(SAMPLES.flip(0))).exp().sum(),
        lambda: (categorical(SAMPLES)[:4] - 1.0).exp().sum(),
        lambda: NET(SAMPLES).softmax(1).log().sum(),
    ],
    ids=["shifted logits", "a deviation", "two graphs", "few", "no exponential"],
)
def test_other_exponentials(loss):
    assert off_ratios(loss()) == []
