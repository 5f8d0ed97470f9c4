"""Stages of a model on ranks, under the schedules of `torch.distributed.pipelining`."""

import argparse

import torch
import torch.distributed as dist
import torch.nn.functional as F
from digits import Tower, digits, start
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    SplitPoint,
    pipeline,
)
from torch.nn.parallel import DistributedDataParallel

SEVERAL_STAGES = {
    "interleaved": ScheduleInterleaved1F1B,
    "zero_bubble": ScheduleInterleavedZeroBubble,
    "breadth_first": ScheduleLoopedBFS,
    "v_shaped": ScheduleZBVZeroBubble,
}
"""Schedules under which a rank has two stages. If v-shaped, the first rank has the first and the last one."""
KINDS = ("gpipe", "1f1b", *SEVERAL_STAGES, "traced", "clip", "tied", "with_replicas")
BUGS = (
    "own_norm",
    "norm_not_summed",
    "scaled_by_own_norm",
    "unsummed",
    "not_scaled",
    "forgotten_stage",
    "repeated",
    "unwrapped",
)
MICROBATCHES = 4


class Stage(nn.Module):
    """The first and the last of `count` stages hold what is before and behind the blocks."""

    def __init__(self, whole, index, count):
        super().__init__()
        share = len(whole.blocks) // count
        self.embed = whole.embed if index == 0 else None
        self.blocks = nn.ModuleDict(
            {str(i): whole.blocks[i] for i in range(index * share, (index + 1) * share)}
        )
        last = index == count - 1
        self.norm, self.head = (whole.norm, whole.head) if last else (None, None)

    def forward(self, x):
        if self.embed is not None:
            x = self.embed(x)
        for block in self.blocks.values():
            x = block(x)
        return x if self.head is None else self.head(self.norm(x)).mean(1)


class Half(nn.Module):
    """An encoder, or a decoder with the same matrix, of which it has a copy."""

    def __init__(self, matrix, decodes):
        super().__init__()
        self.matrix, self.decodes = nn.Parameter(matrix.clone()), decodes
        self.block = nn.Sequential(nn.Linear(16, 16), nn.GELU())

    def forward(self, x):
        return self.block(x) @ self.matrix.T if self.decodes else self.block(x @ self.matrix)


class Tied(nn.Module):
    """Autoencoder in stages with one matrix, of which each stage has a copy; one stage alone has it once."""

    def __init__(self, index, count, matrix):
        super().__init__()
        encoder, decoder = Half(matrix, decodes=False), Half(matrix, decodes=True)
        if count == 1:
            decoder.matrix = encoder.matrix
        self.encoder = encoder if index == 0 else None
        self.decoder = decoder if index == count - 1 else None

    def forward(self, x):
        if self.encoder is not None:
            x = self.encoder(x.flatten(1))
        return x if self.decoder is None else self.decoder(x)


def make_schedule(kind, bug, whole, stage, group, replicas):
    """The schedule of a rank, and its modules."""
    count = dist.get_world_size(group)
    options = {"n_microbatches": MICROBATCHES, "loss_fn": F.cross_entropy}
    options["scale_grads"] = bug != "not_scaled"
    cpu = torch.device("cpu")
    if kind == "traced":
        example = torch.zeros(8, 8, 8)
        split = {"blocks.2": SplitPoint.BEGINNING}
        cut = pipeline(whole, mb_args=(example,), split_spec=split)
        built = cut.build_stage(stage, cpu, group)
        return ScheduleGPipe(built, **options), [built.submod]
    if kind == "tied":
        matrix = torch.randn(64, 16) / 8
        module = Tied(stage, count, matrix)
        options["loss_fn"] = lambda found, images: (found - images.flatten(1)).square().mean()
        built = PipelineStage(module, stage, count, cpu, group=group)
        return ScheduleGPipe(built, **options), [module]
    if kind in SEVERAL_STAGES:
        places = (stage, 2 * count - 1 - stage if kind == "v_shaped" else stage + count)
        modules = [Stage(whole, i, 2 * count) for i in places]
        stages = [
            PipelineStage(module, i, 2 * count, cpu, group=group)
            for module, i in zip(modules, places, strict=True)
        ]
        return SEVERAL_STAGES[kind](stages, **options), modules
    module = Stage(whole, stage, count)
    if kind == "with_replicas" and not (bug == "unwrapped" and stage == count - 1):
        module = DistributedDataParallel(module, process_group=replicas)
    made = ScheduleGPipe if kind == "gpipe" else Schedule1F1B
    return made(PipelineStage(module, stage, count, cpu, group=group), **options), [module]


def clip(modules, bug):
    """By the norm over all stages."""
    parameters = [p for module in modules for p in module.parameters()]
    if bug == "own_norm":
        nn.utils.clip_grad_norm_(parameters, 0.3)
        return
    if bug == "scaled_by_own_norm":
        norm = torch.stack([each.grad.norm() for each in parameters]).norm()
        for each in parameters:
            each.grad.mul_((0.3 / norm).clamp(max=1.0))
        return
    square = nn.utils.get_total_norm([p.grad for p in parameters]) ** 2
    if bug != "norm_not_summed":
        dist.all_reduce(square)
    nn.utils.clip_grads_with_norm_(parameters, 0.3, square.sqrt())


def work(args):
    kind, bug = args.kind, args.bug
    torch.manual_seed(args.seed)
    group, replicas, place = None, None, 0
    if kind == "with_replicas":
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
        group, replicas = mesh["pp"].get_group(), mesh["dp"].get_group()
        place = mesh.get_local_rank("dp")
    stage = dist.get_rank(group)
    schedule, modules = make_schedule(kind, bug, Tower(depth=4), stage, group, replicas)
    trained = modules[:1] if bug == "forgotten_stage" else modules
    optimizer = torch.optim.AdamW([p for m in trained for p in m.parameters()], lr=3e-3)
    images, labels = digits().tensors
    draw = torch.Generator().manual_seed(args.seed + place)
    last = stage == (0 if kind == "v_shaped" else dist.get_world_size(group) - 1)
    for step in range(args.steps):
        rows = torch.randint(len(images), (32,), generator=draw)
        if bug == "repeated":
            rows = rows.chunk(MICROBATCHES)[0].repeat(MICROBATCHES)
        optimizer.zero_grad()
        losses = []
        inputs = (images[rows],) if stage == 0 else ()
        target = images[rows] if kind == "tied" else labels[rows]
        more = {"target": target, "losses": losses} if last else {}
        schedule.step(*inputs, **more)
        if kind == "tied" and bug != "unsummed":
            half = modules[0].decoder if stage else modules[0].encoder
            dist.all_reduce(half.matrix.grad)
        if kind == "clip":
            clip(modules, bug)
        optimizer.step()
        if last and step % 5 == 4 and place == 0:
            print(f"step {step + 1}: {torch.stack(losses).mean().item():.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, default="1f1b")
    parser.add_argument("--bug", choices=BUGS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    start(work, 4 if args.kind == "with_replicas" else 2, args)


if __name__ == "__main__":
    main()
