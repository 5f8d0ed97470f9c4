"""L-BFGS with a line search, long after it has found the minimum of a logistic regression."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.data[:600], dtype=torch.float32) / 16
labels = torch.tensor(digits.target[:600])
model = nn.Linear(64, 10)
optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0, line_search_fn="strong_wolfe")


def closure() -> torch.Tensor:
    optimizer.zero_grad()
    decay = sum(each.square().sum() for each in model.parameters())
    loss = functional.cross_entropy(model(images), labels) + 1e-2 * decay
    loss.backward()
    return loss


for _step in range(60):
    loss = optimizer.step(closure)
print(f"loss {loss.item():.4f}")
