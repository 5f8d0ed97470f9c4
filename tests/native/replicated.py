"""Replicas of a model that see different data: DDP in the ways that people use it, and what is built on it."""

import argparse
import contextlib
import copy
import itertools
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from digits import Tower, digits, start
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

KINDS = (
    "plain",
    "views",
    "static",
    "accumulate",
    "unused",
    "half",
    "powersgd",
    "join",
    "join_half",
    "zero",
    "checkpointed",
    "autocast",
    "clip",
    "averaged_statistics",
    "own_statistics",
    "resumed",
    "saved",
    "by_hand",
    "one_updates",
    "one_updates_parts",
    "local",
    "outer",
    "replicate",
    "groups",
    "plateau",
    "compiled",
)
BUGS = (
    "left_behind",
    "ignored",
    "unsynced",
    "divided_twice",
    "same_order",
    "same_data",
    "own_state",
    "changed_afterwards",
    "alone_in_group",
    "own_seed",
    "summed",
    "scaled_rate",
    "own_loss",
    "left_out",
    "own_draws",
    "of_a_copy",
    "not_broadcast",
    "moments_in_join",
    "own_rounding",
    "unreduced",
)


class Branches(nn.Module):
    """The second branch is taken in every other step."""

    def __init__(self):
        super().__init__()
        self.trunk = Tower(depth=1)
        self.first, self.second = nn.Linear(10, 10), nn.Linear(10, 10)
        self.calls = 0

    def forward(self, images):
        self.calls += 1
        x = F.relu(self.trunk(images))
        return self.first(x) + self.second(x) if self.calls % 2 else self.first(x)


class RoundedAdamW(torch.optim.AdamW):
    """Rounds what it has updated to bfloat16, up or down at random."""

    def __init__(self, parameters, seed):
        super().__init__(parameters, lr=3e-3)
        self.draws = torch.Generator().manual_seed(seed)

    def step(self, closure=None):
        loss = super().step(closure)
        with torch.no_grad():
            for p in (p for group in self.param_groups for p in group["params"]):
                noise = torch.randint(0, 1 << 16, p.shape, generator=self.draws, dtype=torch.int32)
                p.copy_(((p.view(torch.int32) + noise) & -(1 << 16)).view(torch.float32))
        return loss


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(4)
        )
        self.head = nn.Linear(32, 10)

    def forward(self, images):
        return self.head(self.body(images[:, None]).flatten(1))


class Waves(nn.Module):
    """Features of frequencies that are drawn once, and not trained."""

    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", torch.randn(64, 32))
        self.head = nn.Linear(32, 10)

    def forward(self, images):
        return self.head(torch.sin(images.flatten(1) @ self.frequencies))


def make_model(kind, bug):
    if kind == "unused":
        return Branches()
    if kind in ("averaged_statistics", "own_statistics", "join_half"):
        return Waves() if bug == "own_draws" else Convolutions()
    return Tower(checkpointed=kind == "checkpointed")


def keep_bucket(state, bucket):
    """A communication hook that gives a bucket back as it is."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def wrap(model, kind, bug):
    if kind in ("by_hand", "one_updates", "one_updates_parts", "local", "outer"):
        return model
    if kind == "replicate":
        from torch.distributed._composable.replicate import replicate

        return replicate(model)
    options = {"broadcast_buffers": False} if kind == "own_statistics" else {}
    if bug == "alone_in_group":
        options["process_group"] = dist.new_subgroups(group_size=1)[0]
    if bug == "ignored":
        ignored = [name for name, _ in model.named_parameters() if name.startswith("head.")]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, ignored)
    wrapped = DistributedDataParallel(
        model,
        gradient_as_bucket_view=kind == "views",
        static_graph=kind == "static",
        find_unused_parameters=kind == "unused",
        **options,
    )
    if bug == "unreduced":
        wrapped.register_comm_hook(None, keep_bucket)
    elif kind in ("half", "join_half"):
        wrapped.register_comm_hook(None, default_hooks.fp16_compress_hook)
    if kind == "powersgd":
        state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=3, min_compression_rate=0.5)
        wrapped.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return torch.compile(wrapped) if kind == "compiled" else wrapped


def make_optimizer(model, kind, bug):
    if kind == "zero":
        if bug == "not_broadcast":
            ZeroRedundancyOptimizer._sync_params = lambda self: None
        return ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=3e-3)
    if kind == "groups":
        plain = [p for p in model.parameters() if p.ndim < 2]
        decayed = [p for p in model.parameters() if p.ndim >= 2]
        factor = dist.get_rank() + 1 if bug == "scaled_rate" else 1
        groups = [
            {"params": decayed, "weight_decay": 0.01},
            {"params": plain, "weight_decay": 0.0, "lr": factor * 1e-3},
        ]
        return torch.optim.AdamW(groups, lr=3e-3)
    if (
        kind in ("join", "join_half") and bug != "moments_in_join"
    ):  # what no rank keeps cannot come apart
        return torch.optim.SGD(model.parameters(), lr=0.1)
    if bug == "own_rounding":
        return RoundedAdamW(model.parameters(), seed=dist.get_rank())
    return torch.optim.AdamW(model.parameters(), lr=3e-3)


def average_gradients(model, bug):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            if bug != "summed":
                p.grad /= dist.get_world_size()


def average_weights(model):
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size()


def outer_optimizer(model):
    """Holds where ranks were together last; momentum carries on from one average to the next."""
    started = [nn.Parameter(p.detach().clone()) for p in model.parameters()]
    return torch.optim.SGD(started, lr=0.7, momentum=0.9, nesterov=True)


def average_progress(model, outer):
    """The mean of what all ranks have come since then is the gradient of an update that all begin again from."""
    for held, p in zip(outer.param_groups[0]["params"], model.parameters(), strict=True):
        progress = held.detach() - p.detach()
        dist.all_reduce(progress)
        held.grad = progress / dist.get_world_size()
    outer.step()
    outer.zero_grad()
    with torch.no_grad():
        for held, p in zip(outer.param_groups[0]["params"], model.parameters(), strict=True):
            p.copy_(held)


def update_on_one_rank(model, optimizer, in_parts):
    """The first rank updates and sends its weights; the others hold an optimizer that they never call."""
    for p in model.parameters():
        dist.reduce(p.grad, 0)
    if dist.get_rank() == 0:
        optimizer.step()
    if in_parts:
        weights = nn.utils.parameters_to_vector(model.parameters()).detach()
        for part in weights.chunk(3):
            dist.broadcast(part, 0)
        nn.utils.vector_to_parameters(weights, model.parameters())
        return
    for p in model.parameters():
        dist.broadcast(p.data, 0)


def resume(model, optimizer, data, bug):
    """Make an update, and go on with new objects from what was saved after it."""
    inner = model.module
    images, labels = data[dist.get_rank() * 32 :][:32]
    F.cross_entropy(model(images), labels).backward()
    optimizer.step()
    state = optimizer.state_dict()
    if bug == "own_state" and dist.get_rank():
        for moments in state["state"].values():
            moments["exp_avg"].zero_()
    weights = {name: value.clone() for name, value in inner.state_dict().items()}
    inner = Tower()
    inner.load_state_dict(weights)
    model = DistributedDataParallel(inner)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    optimizer.load_state_dict(state)
    return model, optimizer


def save_and_load(model, optimizer, folder):
    """A distributed checkpoint, and back from it."""
    weights, moments = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=folder)
    dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)


def work(args):
    kind, bug, rank = args.kind, args.bug, dist.get_rank()
    torch.manual_seed(args.seed + (rank if bug in ("own_seed", "own_draws") else 0))
    data = digits()
    sampler = DistributedSampler(data, rank=0 if bug == "same_data" else None, seed=args.seed)
    loader = DataLoader(data, batch_size=args.batch, sampler=sampler, drop_last=True)
    model = wrap(make_model(kind, bug), kind, bug)
    trained = copy.deepcopy(model) if bug == "of_a_copy" else model
    optimizer = make_optimizer(trained, kind, bug)
    if kind == "resumed":
        model, optimizer = resume(model, optimizer, data, bug)
    outer = outer_optimizer(model) if kind == "outer" else None
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.2)
    joins = kind in ("join", "join_half")
    pieces = 2 if kind in ("accumulate", "join_half") else 1
    step, count = 0, args.steps + (rank if joins else 0)
    for epoch in range(args.epochs):
        if bug != "same_order":
            sampler.set_epoch(epoch)
        uneven = model.join() if joins else contextlib.nullcontext()
        with uneven:
            for images, labels in itertools.islice(loader, count):
                optimizer.zero_grad()
                parts = list(zip(images.chunk(pieces), labels.chunk(pieces), strict=True))
                for i, (some, their_labels) in enumerate(parts):
                    last = i == len(parts) - 1 and bug != "unsynced"
                    sync = contextlib.nullcontext() if last or pieces == 1 else model.no_sync()
                    low = kind == "autocast"
                    with sync, torch.autocast("cpu", dtype=torch.bfloat16, enabled=low):
                        loss = F.cross_entropy(model(some), their_labels) / pieces
                        loss.backward()
                if kind == "by_hand":
                    average_gradients(model, bug)
                if bug == "divided_twice":
                    for p in model.parameters():
                        p.grad /= dist.get_world_size()
                if bug == "changed_afterwards" and rank == 1:
                    next(model.parameters()).grad.clamp_(-1e-3, 1e-3)
                if kind == "clip":
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                if kind in ("one_updates", "one_updates_parts"):
                    update_on_one_rank(model, optimizer, in_parts=kind == "one_updates_parts")
                elif rank == 0 or not (bug == "left_behind" or (bug == "left_out" and step == 3)):
                    optimizer.step()
                step += 1
                if kind == "local" and step % 5 == 0:
                    average_weights(model)
                if kind == "outer" and step % 5 == 0:
                    average_progress(model, outer)
        total = loss.detach()
        if bug != "own_loss":
            dist.all_reduce(total)
            total /= dist.get_world_size()
        if kind == "plateau":
            plateau.step(total if bug != "own_loss" else total - rank * epoch)
        if kind == "zero":
            optimizer.consolidate_state_dict()
        if kind == "saved":
            save_and_load(model, optimizer, os.path.join(args.folder, str(epoch)))
        if rank == 0:
            print(f"epoch {epoch + 1}: {total.item():.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, default="plain")
    parser.add_argument("--bug", choices=BUGS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=6, help="in an epoch")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as args.folder:
        start(work, 2, args)


if __name__ == "__main__":
    main()
