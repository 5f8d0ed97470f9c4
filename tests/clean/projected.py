"""Clean: parameters that are put back into bounds after every update, through `.data` or without gradients.

A critic whose weights are clipped, a decoder with columns of length one whose biases stay small, and a table that torch keeps
within a norm.
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def critic(loader: DataLoader) -> None:
    generate = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 8))
    judge = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    generating = torch.optim.RMSprop(generate.parameters(), lr=5e-4)
    judging = torch.optim.RMSprop(judge.parameters(), lr=5e-4)
    for _ in range(6):
        for number, (real,) in enumerate(loader):
            made = generate(torch.randn(len(real), 4)).detach()
            judging.zero_grad()
            (judge(made).mean() - judge(real).mean()).backward()
            judging.step()
            for weight in judge.parameters():
                weight.data.clamp_(-0.05, 0.05)
            if number % 4 == 3:
                generating.zero_grad()
                (-judge(generate(torch.randn(len(real), 4))).mean()).backward()
                generating.step()


def decoder(loader: DataLoader) -> None:
    encode, decode = nn.Linear(8, 32), nn.Linear(32, 8)
    optimizer = torch.optim.Adam([*encode.parameters(), *decode.parameters()], lr=1e-3)
    for _ in range(6):
        for (real,) in loader:
            code = encode(real).relu()
            loss = (decode(code) - real).square().mean() + 1e-3 * code.abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                decode.weight /= decode.weight.norm(dim=0, keepdim=True)


def table(loader: DataLoader) -> None:
    model = nn.Sequential(nn.Embedding(20, 16, max_norm=1.0), nn.Linear(16, 20))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        for (real,) in loader:
            words = real.argmax(1)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(words), (words + 1) % 20).backward()
            optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=["critic", "decoder", "table"], default="critic")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    data = TensorDataset(torch.randn(640, 8) * 0.5 + 1)
    loader = DataLoader(data, batch_size=64, shuffle=True)
    {"critic": critic, "decoder": decoder, "table": table}[args.kind](loader)


if __name__ == "__main__":
    main()
