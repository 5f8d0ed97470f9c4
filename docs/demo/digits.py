"""Train a small CNN on scikit-learn's handwritten digits, on one process or several.

An ordinary script: autocast to bfloat16, dropout and batch norm, a schedule that follows every
step, an evaluation after every epoch, and DistributedDataParallel when `--ranks` is above one.
`--bug NAME` puts in one of the mistakes that a job survives without an error.
"""

import argparse
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

BUGS = {
    "no-zero-grad": "gradients of all earlier steps are added to this one's",
    "stale-optimizer": "the optimizer is built before the last layer is replaced",
    "eval-dropout": "F.dropout is not told when the model evaluates",
    "no-eval": "model.eval() is forgotten, so batch norm and dropout go on training",
    "double-schedule": "the learning rate is scheduled by the loop and by its callback",
    "no-autocast": "the last layer's kernel works in place, which autocast does not reach",
    "unsynced": "a parameter is added after DDP took its list (needs --ranks 2)",
}


class ConvNet(nn.Module):
    """Two convolutions and a linear layer, for images of 1 x 8 x 8."""

    def __init__(self, classes: int, dropout: float, bug: str | None = None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(32)
        self.head = nn.Linear(32 * 2 * 2, classes, bias=False)
        self.prior: nn.Parameter | None = None
        self.dropout = dropout
        self.bug = bug

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(images))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        x = x.flatten(1)
        if self.bug == "eval-dropout":
            x = F.dropout(x, self.dropout)
        else:
            x = F.dropout(x, self.dropout, training=self.training)
        logits = self.head(x)
        return logits if self.prior is None else logits + self.prior


class InPlaceLinear(nn.Linear):
    """Adds onto an output that is there already. Autocast leaves in-place operators alone."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        output = torch.zeros(len(input), self.out_features)
        return output.addmm_(input.float(), self.weight.t())


def give_ten_classes(model: nn.Module, args: argparse.Namespace) -> None:
    """The network was made for 100 classes; the digits are ten."""
    linear = InPlaceLinear if args.bug == "no-autocast" else nn.Linear
    model.head = linear(model.head.in_features, 10, bias=False)


def make_optimizer(model: nn.Module, args: argparse.Namespace) -> torch.optim.Optimizer:
    if args.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    return torch.optim.Adam(model.parameters(), lr=args.lr)


def start_from_class_frequencies(model: nn.Module, labels: torch.Tensor) -> None:
    """The first guess is then the share of each class."""
    share = torch.bincount(labels, minlength=10) / len(labels)
    model.prior = nn.Parameter(share.log())


def load(args: argparse.Namespace) -> tuple[TensorDataset, TensorDataset]:
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    train, test = train_test_split(range(len(labels)), test_size=0.2, random_state=0)
    if args.samples:
        train = train[: args.samples]
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader, args: argparse.Namespace) -> float:
    if args.bug != "no-eval":
        model.eval()
    correct = total = 0
    for images, labels in loader:
        with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "bfloat16"):
            predicted = model(images).argmax(1)
        correct += (predicted == labels).sum().item()
        total += len(labels)
    model.train()
    return correct / total


def loaders(rank: int, args: argparse.Namespace) -> tuple[DataLoader, DataLoader]:
    train_set, test_set = load(args)
    sampler = None
    if args.ranks > 1:
        sampler = DistributedSampler(train_set, args.ranks, rank, seed=args.seed, drop_last=True)
    train_loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        shuffle=sampler is None,
        sampler=sampler,
        drop_last=True,
        num_workers=args.workers,
    )
    return train_loader, DataLoader(test_set, batch_size=120)


def train(rank: int, args: argparse.Namespace) -> None:
    torch.manual_seed(args.seed)
    train_loader, test_loader = loaders(rank, args)
    labels = train_loader.dataset.tensors[1]
    network = ConvNet(100, args.dropout, args.bug)
    if args.bug == "stale-optimizer":
        optimizer = make_optimizer(network, args)
    give_ten_classes(network, args)
    if args.bug != "unsynced":
        start_from_class_frequencies(network, labels)
    model = DistributedDataParallel(network) if args.ranks > 1 else network
    if args.bug == "unsynced":
        start_from_class_frequencies(network, labels)
    if args.bug != "stale-optimizer":
        optimizer = make_optimizer(network, args)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, T_max=args.epochs * len(train_loader)
    )

    for epoch in range(args.epochs):
        if args.ranks > 1:
            train_loader.sampler.set_epoch(epoch)
        running = 0.0
        for images, labels in train_loader:
            if args.bug != "no-zero-grad":
                optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=args.precision == "bfloat16"):
                loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            schedule.step()
            if args.bug == "double-schedule":
                schedule.step()
            running += loss.item()
        accuracy = evaluate(model, test_loader, args)
        if rank == 0:
            mean = running / len(train_loader)
            print(f"epoch {epoch + 1}  loss {mean:.4f}  test accuracy {accuracy:.3f}", flush=True)
    if args.save and rank == 0:
        torch.save(network.state_dict(), args.save)


def train_on_one_of_several(rank: int, args: argparse.Namespace, meeting: str) -> None:
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=args.ranks)
    train(rank, args)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="bugs: " + "; ".join(f"{name}: {text}" for name, text in BUGS.items()),
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--dropout", type=float, default=0.25)
    parser.add_argument("--optimizer", choices=["adam", "sgd"], default="adam")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="bfloat16")
    parser.add_argument("--samples", type=int, default=0, help="training samples, 0 for all")
    parser.add_argument("--workers", type=int, default=0, help="data-loader workers")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--save", help="write the trained weights here")
    parser.add_argument("--bug", choices=sorted(BUGS))
    args = parser.parse_args()
    if args.ranks > 1:
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(train_on_one_of_several, (args, f"file://{folder}/meeting"), nprocs=args.ranks)
    else:
        train(0, args)


if __name__ == "__main__":
    main()
