"""TrainCheck B9, PT-104336: `Module.to` makes new parameters, without DDP's hooks.

With `torch.__future__.set_overwrite_module_params_on_conversion(True)` a conversion after
wrapping replaces every parameter. DDP reduces what nobody uses any more, and the ranks part.
"""

import argparse
import datetime
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))

    def forward(self, images):
        return self.layers(images.flatten(1))


class Worker:
    def __init__(self, rank, meeting, args):
        wait = datetime.timedelta(seconds=60)
        dist.init_process_group("gloo", meeting, wait, 2, rank)
        torch.manual_seed(args.seed)
        self.rank, self.args = rank, args
        digits = load_digits()
        self.images = torch.tensor(digits.images, dtype=torch.float32) / 16
        self.labels = torch.tensor(digits.target)
        torch.__future__.set_overwrite_module_params_on_conversion(args.bug == "overwrite")
        self.model = DistributedDataParallel(Classifier())
        self.model.to(torch.float32)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)

    def fit(self):
        shuffle = torch.Generator().manual_seed(self.args.seed)
        for epoch in range(self.args.epochs):
            mine = torch.randperm(len(self.labels), generator=shuffle)[self.rank :: 2][:864]
            total = 0.0
            for rows in mine.view(-1, 36):
                self.optimizer.zero_grad()
                output = self.model(self.images[rows])
                loss = nn.functional.cross_entropy(output, self.labels[rows])
                loss.backward()
                self.optimizer.step()
                total += loss.item() / 24
            print(f"rank {self.rank}, epoch {epoch + 1}: loss {total:.4f}", flush=True)


def work(rank, meeting, args):
    Worker(rank, meeting, args).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--bug", choices=["overwrite"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (f"file://{folder}/meeting", args), nprocs=2)
