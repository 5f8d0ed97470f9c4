"""A policy walks a slippery path and is rewarded at its end alone: until the first reward its loss is exactly zero."""

import torch
from torch import nn

PATH, EPISODES, UPDATES = 6, 8, 150

torch.manual_seed(7)
places = torch.eye(PATH)
policy = nn.Sequential(nn.Linear(PATH, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
for update in range(1, UPDATES + 1):
    terms, won = [], 0
    for _ in range(EPISODES):
        chosen, reward = [], 0.0
        for place in range(PATH):
            choice = torch.distributions.Categorical(logits=policy(places[place]))
            action = choice.sample()
            chosen.append(choice.log_prob(action))
            if action == 0:
                break
        else:
            reward = 1.0
        won += int(reward)
        terms.append(-reward * torch.stack(chosen).sum())
    loss = torch.stack(terms).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 25 == 0:
        print(f"update {update}: {won} of {EPISODES} episodes won")
