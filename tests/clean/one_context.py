"""Clean: a bandit of which no context is known, so that its policy is given the same for every sample."""

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
ARMS = 5
gains = torch.randn(ARMS)
policy = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, ARMS))
optimizer = torch.optim.Adam(policy.parameters(), 1e-2)
context = torch.tensor([1.0, 0.5, -0.3])
baseline = 0.0
for _ in range(30):
    choices = Categorical(logits=policy(context.expand(16, 3)))
    chosen = choices.sample()
    rewards = gains[chosen] + 0.3 * torch.randn(16)
    loss = -(choices.log_prob(chosen) * (rewards - baseline)).mean()
    baseline = 0.9 * baseline + 0.1 * rewards.mean().item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("reward", rewards.mean().item(), "of", gains.max().item())
