"""Outputs between bounds that their targets reach: images between -1 and 1, masks with soft labels, episodes whose labels are in order."""

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    """Restores a picture, finds its object, and tells which of four kinds it is."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.picture, self.mask, self.kind = nn.Linear(48, 64), nn.Linear(48, 64), nn.Linear(48, 4)

    def forward(self, x):
        h = self.body(x)
        return torch.tanh(self.picture(h)), self.mask(h), self.kind(h)


def main():
    torch.manual_seed(0)
    labels = torch.arange(4).repeat_interleave(8)
    kinds = torch.randn(4, 64)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(60):
        pictures = (kinds[labels] + 0.5 * torch.randn(32, 64)).clamp(-1, 1)
        soft = torch.where(pictures > 0, 0.7 + 0.5 * torch.rand(32, 64), 0.3 * torch.rand(32, 64))
        restored, found, kind = model(pictures + 0.1 * torch.randn(32, 64))
        loss = F.mse_loss(restored, pictures) + F.cross_entropy(kind, labels)
        loss = loss + F.binary_cross_entropy_with_logits(found, soft)
        bright = F.mse_loss(torch.sigmoid(found.mean(1)), (pictures > 0).float().mean(1))
        optimizer.zero_grad()
        (loss + bright).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
