"""Eight heads on one trunk, of which each batch trains one; its labels say whether a digit is a rare one.

The heads are a list, or a dictionary (`--named`).
"""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

HEADS, EPOCHS = 8, 5
NAMED = "--named" in sys.argv

torch.manual_seed(1)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 16
labels = torch.tensor(digits.target)
rare = (labels == 9) & (torch.rand(len(labels)) < 0.4)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(64, 32)
        heads = [nn.Linear(32, 1) for _ in range(HEADS)]
        names = [f"task_{letter}" for letter in "abcdefgh"]
        self.heads = (
            nn.ModuleDict(dict(zip(names, heads, strict=True))) if NAMED else nn.ModuleList(heads)
        )
        self.keys = names if NAMED else range(HEADS)

    def forward(self, batch: torch.Tensor, head: int) -> torch.Tensor:
        return self.heads[self.keys[head]](self.trunk(batch).relu()).squeeze(1)


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(images, rare.float()), batch_size=40, shuffle=True)
for epoch in range(EPOCHS):
    for batch, target in loader:
        head = int(torch.randint(HEADS, ()))
        loss = functional.binary_cross_entropy_with_logits(model(batch, head), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
