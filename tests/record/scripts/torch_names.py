"""A job that calls functions and methods of torch by many names."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 4)
optimizer = torch.optim.AdamW(model.parameters(), 0.1)
for step in range(3):
    optimizer.zero_grad()
    y = model(torch.randn(3, 4))
    y = y.masked_fill(y > 5, float("inf") if step == 2 else 0.0)
    y = y.masked_fill(y < 5, float("inf")) if step == 2 else y
    if step != 1:
        torch.linalg.solve(torch.eye(3), y.detach().nan_to_num())
    torch.einsum("ij,ij->i", y, y).clamp(0, 1).mean().backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.1)
    optimizer.step()
print(torch.cat([p.detach().flatten() for p in model.parameters()]).sum().item())
