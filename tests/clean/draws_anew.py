"""Clean: the script itself draws a layer anew, loads weights in the middle, and swaps in an average to evaluate."""

import argparse
import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits


def main(seed: int, steps: int) -> None:
    torch.manual_seed(seed)
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    x = (x / 16).to(torch.float32)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.SiLU(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(data, batch_size=60, shuffle=True)
    average = [p.detach().clone() for p in model.parameters()]
    best = copy.deepcopy(model.state_dict())
    batches = iter(loader)
    for step in range(1, steps + 1):
        inputs, targets = next(batches)
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, p in zip(average, model.parameters(), strict=True):
                mean.lerp_(p, 0.1)
        if step == 9:
            best = copy.deepcopy(model.state_dict())
        if step == 10:
            torch.nn.init.xavier_uniform_(model[2].weight)
            torch.nn.init.zeros_(model[2].bias)
        if step % 10 == 0:
            held = [p.detach().clone() for p in model.parameters()]
            model.eval()
            with torch.no_grad():
                for mean, p in zip(average, model.parameters(), strict=True):
                    p.copy_(mean)
                print(step, F.cross_entropy(model(x[:200]), y[:200]).item())
                for start, p in zip(held, model.parameters(), strict=True):
                    p.copy_(start)
        if step == 20:
            model.load_state_dict(best)
    print(step, loss.item())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=24)
    main(**vars(parser.parse_args()))
