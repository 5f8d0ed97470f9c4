"""TrainCheck's new AC-2665: the optimizer is built before the model is wrapped.

FSDP without `use_orig_params` flattens all parameters into new ones. The optimizer goes on
updating tensors that nobody reads, and the model does not train. One rank is enough to see it.
"""

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def prepare(model: nn.Module) -> nn.Module:
    """What a launcher's `prepare` does with a model."""
    return FSDP(model, device_id=torch.device("cpu"), use_orig_params=False)


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    if args.bug == "optimizer-first":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        model = prepare(model)
    else:
        model = prepare(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(images), (64,))
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bug", choices=["optimizer-first"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        meeting = "file://" + os.path.join(folder, "meeting")
        dist.init_process_group("gloo", init_method=meeting, rank=0, world_size=1)
        train(args)
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
