"""A model whose parameters are cut over ranks: FSDP2, and FSDP with flat parameters."""

import argparse
import contextlib
import os
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from digits import Tower, digits, start
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    ShardingStrategy,
    fully_shard,
)
from torch.utils.data import DataLoader, DistributedSampler

KINDS = (
    "fully",
    "kept",
    "mixed",
    "accumulate",
    "clip",
    "checkpointed",
    "saved",
    "uneven",
    "narrow",
    "hybrid",
    "flat",
    "flat_kept",
    "flat_clip",
    "flat_accumulate",
    "flat_hybrid",
    "compiled",
)
BUGS = (
    "unsynced",
    "first_synced",
    "cleared",
    "clipped_by_part",
    "part_changed",
    "replicas_forgotten",
    "one_left_out",
    "stays_gathered",
    "reduces_low",
    "before_sharding",
    "shards_of_one_rank",
)
HYBRID = ("hybrid", "flat_hybrid")


def flat(model, kind):
    """FSDP with flat parameters."""
    options = {}
    if kind == "flat_kept":
        options["sharding_strategy"] = ShardingStrategy.SHARD_GRAD_OP
    if kind == "flat_hybrid":
        options["sharding_strategy"] = ShardingStrategy.HYBRID_SHARD
        options["device_mesh"] = init_device_mesh("cpu", (2, 2), mesh_dim_names=("copy", "dp"))
    kept = kind in ("flat_clip", "flat_accumulate")
    return FullyShardedDataParallel(
        model, device_id=torch.device("cpu"), use_orig_params=kept, **options
    )


def shard(model, kind, bug):
    if kind.startswith("flat"):
        return flat(model, kind)
    ranks = dist.get_world_size()
    if kind == "hybrid":
        shape = (2, 2) if ranks > 1 else (1, 1)
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("copy", "dp"))
        mesh = mesh["dp"] if bug == "replicas_forgotten" else mesh
    else:
        mesh = init_device_mesh("cpu", (ranks,), mesh_dim_names=("dp",))
    options = {"mesh": mesh, "reshard_after_forward": kind != "kept"}
    if kind == "mixed":
        options["mp_policy"] = MixedPrecisionPolicy(
            torch.bfloat16, torch.bfloat16 if bug == "reduces_low" else torch.float32
        )
    if bug == "one_left_out":
        options["ignored_params"] = {model.norm.weight, model.norm.bias}
    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)
    if bug == "stays_gathered":
        model.set_reshard_after_backward(False)
    return torch.compile(model) if kind == "compiled" else model


def clip(model, optimizer, kind, bug):
    if kind == "flat_clip":
        model.clip_grad_norm_(0.5)
    elif bug == "clipped_by_part":
        parts = [p.grad.to_local() for p in model.parameters()]
        norm = torch.stack([part.norm() for part in parts]).norm()
        for part in parts:
            part.mul_(min(1.0, 0.5 / norm.item()))
    elif kind == "clip":
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)


def loss_of(kind, found, labels):
    if kind == "narrow":
        return F.mse_loss(found, labels[:, None] / 10)
    return F.cross_entropy(found, labels)


def work(args):
    kind, bug, rank = args.kind, args.bug, dist.get_rank()
    torch.manual_seed(args.seed)
    data = digits()
    sampler = DistributedSampler(data, seed=args.seed)
    loader = DataLoader(data, batch_size=args.batch, sampler=sampler, drop_last=True)
    tower = Tower(width=18 if kind == "uneven" else 16, checkpointed=kind == "checkpointed")
    if kind == "narrow":  # one output: the second rank has no element of its weight
        tower.head = torch.nn.Linear(16, 1)
    whole = list(tower.parameters())
    model = shard(tower, kind, bug)
    if bug == "shards_of_one_rank":
        for p in model.parameters():
            dist.broadcast(p.to_local().detach(), 0)
    trained = whole if bug == "before_sharding" else model.parameters()
    optimizer = torch.optim.AdamW(trained, lr=3e-3)
    pieces = 2 if kind in ("accumulate", "flat_accumulate") else 1
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for number, (images, labels) in enumerate(loader):
            if number == args.steps:
                break
            optimizer.zero_grad()
            parts = list(zip(images.chunk(pieces), labels.chunk(pieces), strict=True))
            for i, (some, their_labels) in enumerate(parts):
                last = i == len(parts) - 1 and bug != "unsynced"
                if bug == "cleared":  # each pass reduces: what is summed unreduced is not cleared
                    optimizer.zero_grad()
                    last = True
                if bug == "first_synced":
                    last = i == 0
                if kind == "accumulate":
                    model.set_requires_gradient_sync(last)
                apart = kind == "flat_accumulate" and not last
                with model.no_sync() if apart else contextlib.nullcontext():
                    (loss_of(kind, model(some), their_labels) / pieces).backward()
            clip(model, optimizer, kind, bug)
            optimizer.step()
            if bug == "part_changed" and rank == 3:
                model.head.bias.to_local().detach().mul_(0.9)
        loss = loss_of(kind, model(images), labels).detach()
        if kind == "flat_accumulate":
            model.state_dict()  # each rank gathers all of it
        if kind == "saved":
            weights, moments = get_state_dict(model, optimizer)
            folder = os.path.join(args.folder, str(epoch))
            dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=folder)
            dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=folder)
            set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
        if rank == 0:
            print(f"epoch {epoch + 1}: {loss.item():.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, default="fully")
    parser.add_argument("--bug", choices=BUGS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=6, help="in an epoch")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as args.folder:
        start(work, 4 if args.kind in HYBRID else 2, args)


if __name__ == "__main__":
    main()
