"""Clean: averaged copies of the weights, by torch and by hand, and `load_state_dict` into one."""

import argparse
import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.out = nn.Linear(64, 10)

    def forward(self, x):
        return self.out(self.body(x))


@torch.no_grad()
def follow(average, model, decay=0.9):
    for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
        slow.lerp_(fast, 1 - decay)
    for slow, fast in zip(average.buffers(), model.buffers(), strict=True):
        slow.copy_(fast)


@torch.inference_mode()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(-1) == y).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
    train = torch.utils.data.TensorDataset(x[:1400], y[:1400])
    loader = torch.utils.data.DataLoader(train, batch_size=56, shuffle=True)
    model = Net()
    by_torch = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
    by_hand = copy.deepcopy(model).requires_grad_(False)
    best = copy.deepcopy(model)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for _ in range(args.epochs):
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            by_torch.update_parameters(model)
            follow(by_hand, model)
        best.load_state_dict(by_hand.state_dict())
        scores = [accuracy(m, x[1400:], y[1400:]) for m in (model, by_torch, best)]
        print("accuracy: model {:.3f}, torch's average {:.3f}, own average {:.3f}".format(*scores))


if __name__ == "__main__":
    main()
