"""Clean: two processes train one model in shared memory, without locks. Each sees the updates of the other."""

import torch
from sklearn.datasets import load_digits
from torch import multiprocessing, nn


def train(rank: int, model: nn.Module, both) -> None:
    torch.manual_seed(rank)
    digits = load_digits()
    pictures = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(20):
        chosen = torch.randint(len(labels), (32,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures[chosen]), labels[chosen])
        both.wait(200)  # so that each updates between a pass of the other and its update
        loss.backward()
        if rank == 1:
            both.wait(200)
        optimizer.step()
        if rank == 0:
            both.wait(200)


def main() -> None:
    context = multiprocessing.get_context("spawn")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).share_memory()
    both = context.Barrier(2)
    processes = [context.Process(target=train, args=(rank, model, both)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert all(process.exitcode == 0 for process in processes)


if __name__ == "__main__":
    main()
