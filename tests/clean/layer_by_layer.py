"""Clean: each layer has an optimizer and a loss of its own, and is trained before the next one, without backward through layers."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F


class Layer(nn.Linear):
    """Trained to be active on true pairs of picture and label, and silent on false ones."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=3e-3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(F.normalize(x), self.weight, self.bias).relu()

    def learn(self, true: torch.Tensor, false: torch.Tensor, updates: int) -> None:
        for _ in range(updates):
            high = self.forward(true).square().mean(1)
            low = self.forward(false).square().mean(1)
            loss = F.softplus(torch.cat([0.1 - high, low - 0.1])).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def main() -> None:
    torch.manual_seed(0)
    digits = load_digits()
    data = torch.utils.data.TensorDataset(
        torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    )
    pictures, labels = next(iter(torch.utils.data.DataLoader(data, 400, shuffle=True)))
    wrong = (labels + torch.randint(1, 10, labels.shape)) % 10
    true = torch.cat([pictures, F.one_hot(labels, 10)], 1)
    false = torch.cat([pictures, F.one_hot(wrong, 10)], 1)
    for layer in [Layer(74, 64), Layer(64, 64), Layer(64, 32)]:
        layer.learn(true, false, updates=20)
        true, false = layer.forward(true).detach(), layer.forward(false).detach()
    print(f"active {true.square().mean():.3f}, silent {false.square().mean():.3f}")


if __name__ == "__main__":
    main()
