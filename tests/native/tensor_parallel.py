"""Layers that are cut over ranks: DTensor's plans, alone and with replicas."""

import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from digits import BATCH, Tower, digits, start
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

KINDS = ("plain", "sequence", "loss", "clip", "table", "with_shards", "with_averages")
BUGS = (
    "part_changed",
    "other_batches",
    "own_norms",
    "not_summed",
    "bias_twice",
    "wrong_layout",
    "own_dropout",
    "axis_left_out",
    "wrong_axis",
    "pieces_left_out",
    "same_data",
    "own_targets",
    "clipped_by_part",
    "clipped_locally",
    "shards_averaged",
)
TWO_D = ("with_shards", "with_averages")


def parallelize(model, mesh, kind, bug):
    """Cut the inner layers of each block; the rest is on all ranks."""
    whole = kind in ("sequence", "clip")
    for block in model.blocks:
        plan = {
            "up": ColwiseParallel(),
            "down": RowwiseParallel(output_layouts=Partial() if bug == "not_summed" else None),
        }
        if whole:
            plan = {
                "norm": SequenceParallel(),
                "up": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
                "down": RowwiseParallel(output_layouts=Shard(1)),
            }
            parallelize_module(block, mesh, {"up": plan.pop("up")})
            plan["up"] = ColwiseParallel(input_layouts=Replicate())
        parallelize_module(block, mesh, plan)
    if whole:
        outer = {
            "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(),
            "head": ColwiseParallel(
                input_layouts=Replicate() if bug == "wrong_layout" else Shard(1),
                output_layouts=Replicate(),
            ),
        }
        if bug == "own_norms":
            del outer["norm"]
        parallelize_module(model, mesh, outer)
    if kind == "table":
        parallelize_module(model, mesh, {"embed": RowwiseParallel(input_layouts=Replicate())})
    if kind == "loss":
        head = ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)
        parallelize_module(model, mesh, {"head": head})
    if bug == "bias_twice":
        for block in model.blocks:
            block.down.register_forward_hook(lambda down, _, out: out + down.bias.to_local())
    return model


def average_gradients(model, group, bug):
    """Over the replicas of each part."""
    for p in model.parameters():
        if bug == "pieces_left_out" and hasattr(p.grad, "_local_tensor"):
            continue
        part = getattr(p.grad, "_local_tensor", p.grad)
        dist.all_reduce(part, group=group)
        part /= dist.get_world_size(group)


def clip(model, bug):
    """By the norm of all shards; as a bug by that of the shards on this rank."""
    if bug == "clipped_by_part":
        parts = [getattr(p.grad, "_local_tensor", p.grad) for p in model.parameters()]
        norm = torch.stack([part.norm() for part in parts]).norm()
        for part in parts:
            part.mul_(min(1.0, 0.5 / norm.item()))
    elif bug == "clipped_locally":
        pieces = []
        for p in model.parameters():
            pieces.append(torch.empty_like(getattr(p, "_local_tensor", p).detach()))
            pieces[-1].grad = getattr(p.grad, "_local_tensor", p.grad)
        torch.nn.utils.clip_grad_norm_(pieces, 0.5)
    else:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5, foreach=False)


def work(args):
    kind, bug, rank = args.kind, args.bug, dist.get_rank()
    torch.manual_seed(args.seed)
    ranks, places = dist.get_world_size(), (0,)
    if kind in TWO_D:
        shape = (2, 2) if ranks > 1 else (1, 1)
        whole = init_device_mesh("cpu", shape, mesh_dim_names=("dp", "tp"))
        dp, tp = whole["dp"], whole["tp"]
        places = (whole.get_local_rank("dp"),) if ranks > 1 else (0, 1)
    else:
        dp, tp = None, init_device_mesh("cpu", (ranks,), mesh_dim_names=("tp",))
    dropout = 0.1 if bug == "own_dropout" else 0.0
    tower = Tower(width=16, dropout=dropout)
    if kind == "table":
        tower.embed = torch.nn.Embedding(18, 16)
    model = parallelize(tower, tp, kind, bug)
    if bug == "own_dropout":
        torch.manual_seed(args.seed + rank)
    if kind == "with_shards":
        for block in model.blocks:
            fully_shard(block, mesh=dp)
        fully_shard(model, mesh=dp)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=False)
    images, labels = digits().tensors
    if kind == "table":  # a row for each shade of grey, of which there are 17
        images = (images.flatten(1) * 16).long()
    parts = {"other_batches": (rank,), "same_data": (0,)}.get(bug, places)
    draws = [torch.Generator().manual_seed(args.seed + part) for part in parts]
    for step in range(args.steps):
        drawn = [torch.randint(len(images), (BATCH,), generator=draw) for draw in draws]
        rows = torch.cat(drawn)
        optimizer.zero_grad()
        targets = labels[rows].roll(rank) if bug == "own_targets" else labels[rows]
        if kind == "loss":
            with loss_parallel():
                loss = F.cross_entropy(model(images[rows]), targets)
                loss.backward()
        else:
            loss = F.cross_entropy(model(images[rows]), labels[rows])
            loss.backward()
        if kind == "with_averages" and bug != "axis_left_out":
            average_gradients(model, (tp if bug == "wrong_axis" else dp).get_group(), bug)
        if bug == "shards_averaged":
            average_gradients(model, tp.get_group(), bug)
        if kind == "clip":
            clip(model, bug)
        optimizer.step()
        if bug == "part_changed" and rank == 1 and step == 3:
            bias = model.blocks[1].down.bias
            getattr(bias, "_local_tensor", bias).detach().mul_(0.9)
        if rank == 0 and step % 5 == 4:
            print(f"step {step + 1}: {loss.item():.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, default="plain")
    parser.add_argument("--bug", choices=BUGS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    start(work, 4 if args.kind in TWO_D else 2, args)


if __name__ == "__main__":
    main()
