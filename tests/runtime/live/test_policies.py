"""What has a gradient in the loss of a policy beside the log-probabilities of its actions."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.distributions import Categorical, Normal

from tspec.runtime.live.losses.policies import moving_weights, stretched_weights

ACTIONS = torch.tensor([0, 2, 1, 1])


@dataclass(frozen=True, slots=True)
class Computed:
    """What a policy of three actions and a critic on one trunk compute for four states."""

    logits: torch.Tensor
    values: torch.Tensor

    @property
    def advantages(self) -> torch.Tensor:
        return 1 - self.values


def computed() -> Computed:
    seen = nn.Linear(5, 8)(torch.randn(4, 5)).tanh()
    return Computed(nn.Linear(8, 3)(seen), nn.Linear(8, 1)(seen).squeeze(-1))


def from_logits(of: Computed) -> torch.Tensor:
    return Categorical(logits=of.logits).log_prob(ACTIONS)


def from_probabilities(of: Computed) -> torch.Tensor:
    return Categorical(of.logits.softmax(-1)).log_prob(ACTIONS)


def picked(of: Computed) -> torch.Tensor:
    return of.logits.log_softmax(-1).gather(1, ACTIONS[:, None]).squeeze(1)


def logarithm_of_picked(of: Computed) -> torch.Tensor:
    return of.logits.softmax(-1).gather(1, ACTIONS[:, None]).log().squeeze(1)


def moving(loss: torch.Tensor) -> list[str]:
    return moving_weights(loss.sum())


ways = pytest.mark.parametrize(
    "chances_of", [from_logits, from_probabilities, picked, logarithm_of_picked]
)
Chances = Callable[[Computed], torch.Tensor]


@ways
def test_weights_that_a_critic_computed(chances_of: Chances) -> None:
    of = computed()
    chances = chances_of(of)
    scaled = (of.advantages - of.advantages.mean()) / of.advantages.std()
    ratio = (chances - chances.detach()).exp()
    for loss in (
        -chances * of.advantages,
        -chances.mean() * scaled,
        torch.stack([-one * weight for one, weight in zip(chances, of.advantages, strict=True)]),
        torch.min(ratio * of.advantages, ratio.clamp(0.8, 1.2) * of.advantages),
    ):
        assert moving(loss) == ["weight"]


@ways
def test_weights_that_are_numbers(chances_of: Chances) -> None:
    of = computed()
    chances, weights = chances_of(of), of.advantages.detach()
    ratio = (chances - chances.detach()).exp()
    for loss in (
        of.advantages.square().sum() - chances * weights,
        torch.stack([-one * weight for one, weight in zip(chances, weights, strict=True)]),
        torch.min(ratio * weights, ratio.clamp(0.8, 1.2) * weights),
    ):
        assert moving(loss) == []


@ways
def test_ratios_of_a_policy_and_itself(chances_of: Chances) -> None:
    of = computed()
    ratio = (chances_of(of) - chances_of(of)).exp()
    assert moving(ratio * of.advantages.detach()) == ["old"]


def test_the_ratio_of_two_actions_is_the_product_of_their_ratios() -> None:
    of, other = computed(), computed()
    ratios = [(chances - chances.detach()).exp() for chances in map(picked, (of, other))]
    assert moving(ratios[0] * ratios[1] * of.advantages.detach()) == []


def test_what_is_computed_from_the_policy_itself() -> None:
    of = computed()
    chances, probabilities = picked(of), of.logits.softmax(-1)
    temperature = torch.zeros(1, requires_grad=True)
    focal = (1 - probabilities.gather(1, ACTIONS[:, None]).squeeze(1)).square()
    expected = (probabilities * (0.1 * of.logits.log_softmax(-1) - of.values[:, None])).sum(-1)
    copied = of.values.sigmoid() * probabilities.gather(1, ACTIONS[:, None]).squeeze(1)
    for loss in (focal * chances, temperature.exp() * chances, expected, copied.log()):
        assert moving(loss) == []


def of_one_number() -> torch.Tensor:
    """The log-probabilities of four actions of one number each, `[4, 1]`."""
    return Normal(nn.Linear(5, 1)(torch.randn(4, 5)), 1.0).log_prob(torch.randn(4, 1))


ROW, COLUMN = torch.randn(4), torch.randn(4, 1)


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda: -(of_one_number() * ROW).mean(), ["[4, 1] -> [4, 4]"]),
        (lambda: (ROW * -of_one_number()).sum() / 4, ["[4, 1] -> [4, 4]"]),
        (lambda: -(of_one_number().squeeze(1) * COLUMN).mean(), ["[4] -> [4, 4]"]),
        (
            lambda: (
                -torch.min((r := (of_one_number() - ROW).exp()) * ROW, r.clamp(0.8, 1.2)).mean()
            ),
            ["[4, 1] -> [4, 4]"],
        ),
        (lambda: -(of_one_number().exp() * ROW).mean(), ["[4, 1] -> [4, 4]"]),
        (lambda: -(of_one_number().squeeze(1) * ROW).mean(), []),
        (lambda: -(of_one_number() * COLUMN).mean(), []),
        (lambda: -(of_one_number() * torch.randn(4, 4)).mean(), []),
        (lambda: -(of_one_number() * torch.randn(3)).mean(), []),
        (lambda: (of_one_number() * ROW).sum(0).square().mean(), []),
        (lambda: (nn.Linear(4, 4)(of_one_number() * ROW)).mean(), []),
    ],
)
def test_log_probabilities_in_pairs_with_their_weights(loss, expected: list[str]) -> None:
    assert stretched_weights(loss()) == expected
