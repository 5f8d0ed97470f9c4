"""An actor and a critic on one trunk learn to walk to the right, with one optimizer and the ratios of PPO."""

import argparse

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

STEPS = 16


class ActorCritic(nn.Module):
    """`[n, 2]` to the logits of two actions `[n, 2]`, and values `[n]`."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(2, 32), nn.Tanh())
        self.actor = nn.Linear(32, 2)
        self.critic = nn.Linear(32, 1)

    def forward(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen = self.trunk(states)
        return self.actor(seen), self.critic(seen).squeeze(-1)


@torch.no_grad()
def walked(model: ActorCritic) -> tuple[torch.Tensor, ...]:
    """The states of a walk, its actions, their log-probabilities, and what was earned from each step on."""
    state, rows = torch.zeros(2), []
    for _ in range(STEPS):
        policy = Categorical(logits=model(state)[0])
        action = policy.sample()
        after = state + torch.tensor([0.1 if action == 1 else -0.1, 0.05])
        rows.append((state, action, policy.log_prob(action), (after[0] > 0).float()))
        state = after
    states, actions, chances, rewards = (torch.stack(column) for column in zip(*rows, strict=True))
    weights = 0.95 ** (torch.arange(STEPS) - torch.arange(STEPS)[:, None])
    return states, actions, chances, (weights.triu() * rewards).sum(1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bug", choices=["advantage", "old"], help="what keeps its gradient")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = ActorCritic()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(20):
        states, actions, before, returns = walked(model)
        for _ in range(3):
            logits, values = model(states)
            policy = Categorical(logits=logits)
            chances = policy.log_prob(actions)
            advantages = returns - values
            if args.bug != "advantage":
                advantages = advantages.detach()
            ratio = (chances - (chances if args.bug == "old" else before)).exp()
            gains = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
            loss = F.mse_loss(values, returns) - gains.mean() - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"earned {float(returns[0]):.2f}")


if __name__ == "__main__":
    main()
