"""Clean: an actor and its critic with one optimizer. Episodes get longer, so returns and the critic's loss grow."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class ActorCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.Tanh())
        self.actor, self.critic = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, seen):
        hidden = self.body(seen)
        return Categorical(logits=self.actor(hidden)), self.critic(hidden).squeeze(-1)


def play(model, limit):
    """One episode: go on as long as the action has the sign of what is seen, at most to the limit."""
    seen, chosen, rewards = [], [], []
    while len(rewards) < limit:
        now = torch.randn(2)
        with torch.no_grad():
            action = model(now)[0].sample()
        seen.append(now)
        chosen.append(action)
        rewards.append(1.0)
        if bool(action) != bool(now[0] > 0) and torch.rand(()) < 0.5:
            break
    returns, after = [], 0.0
    for reward in reversed(rewards):
        after = reward + 0.99 * after
        returns.insert(0, after)
    return torch.stack(seen), torch.stack(chosen), torch.tensor(returns)


model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters(), 3e-2)
for _ in range(120):
    episodes = [play(model, 60) for _ in range(4)]
    seen, chosen, returns = (torch.cat(parts) for parts in zip(*episodes, strict=True))
    choices, values = model(seen)
    gains = returns - values.detach()
    loss = F.mse_loss(values, returns) - (choices.log_prob(chosen) * gains).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("steps of an episode", len(seen) / 4, "loss", loss.item())
