"""Clean: passes with dropout and without a graph, on purpose: hard examples, a teacher, Monte Carlo."""

import argparse
import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits


def network():
    return torch.nn.Sequential(
        torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(32, 10)
    )


def main(seed: int, epochs: int, kind: str) -> None:
    torch.manual_seed(seed)
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    x = (x / 16).to(torch.float32)
    model = network()
    teacher = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    train = torch.utils.data.TensorDataset(x[:1200], y[:1200])
    held_out = torch.utils.data.TensorDataset(x[1200:1500], y[1200:1500])
    loader = torch.utils.data.DataLoader(train, batch_size=100, shuffle=True)
    test = torch.utils.data.DataLoader(held_out, batch_size=100)
    for epoch in range(epochs):
        for inputs, targets in loader:
            model.train()
            target = None
            if kind == "mining":
                with torch.no_grad():
                    hardness = F.cross_entropy(model(inputs), targets, reduction="none")
                rows = hardness.topk(60).indices
                inputs, targets = inputs[rows], targets[rows]
            if kind == "teacher":
                with torch.no_grad():
                    target = teacher(inputs)
            optimizer.zero_grad()
            out = model(inputs)
            loss = F.cross_entropy(out, targets)
            if target is not None:
                loss = loss + F.mse_loss(out, target)
            loss.backward()
            optimizer.step()
            if kind == "teacher":
                with torch.no_grad():
                    for p, q in zip(teacher.parameters(), model.parameters(), strict=True):
                        p.lerp_(q, 0.1)
            if kind == "accuracy":
                with torch.no_grad():
                    right = (model(inputs).argmax(1) == targets).float().mean()
        if kind == "accuracy":
            print(right.item())
        model.eval()
        if kind == "montecarlo":
            model[2].train()
        with torch.no_grad():
            for inputs, _ in test:
                n = 4 if kind == "montecarlo" else 1
                out = torch.stack([model(inputs).softmax(1) for _ in range(n)])
        print(epoch, loss.item(), out.var().item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--kind", default="mining", help="teacher, accuracy, montecarlo")
    main(**vars(parser.parse_args()))
