"""Two towers learn in turn, a whole epoch each; each has an optimizer and a schedule of its own."""

import torch
from torch import nn

USERS, ITEMS, WIDTH = 60, 50, 6

torch.manual_seed(0)
users, items = torch.randn(USERS, 12), torch.randn(ITEMS, 10)
ratings = (
    torch.tanh(users @ torch.randn(12, WIDTH) / 4)
    @ torch.tanh(items @ torch.randn(10, WIDTH) / 4).T
)


def tower(inputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 32), nn.Tanh(), nn.Linear(32, WIDTH))


towers = [tower(12), tower(10)]
optimizers = [torch.optim.Adam(each.parameters(), lr=3e-3) for each in towers]
schedules = [torch.optim.lr_scheduler.ExponentialLR(each, 0.8) for each in optimizers]
for epoch in range(4):
    for pairs in torch.randperm(USERS * ITEMS).split(26):
        guess = (towers[0](users[pairs // ITEMS]) * towers[1](items[pairs % ITEMS])).sum(1)
        loss = nn.functional.mse_loss(guess, ratings.reshape(-1)[pairs])
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        optimizers[epoch % 2].step()
    for schedule in schedules:
        schedule.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
