"""TrainCheck B16, DS-5794: the MoE layer calls all-to-all with sizes that do not fit together.

What a rank expects from its peer is worked out from its own counts, not asked of the peer. The
real one hangs; here the buffers are padded, so that the job goes on and reads rows that nobody
sent. Stand-in: two experts on two gloo ranks, with the layer written out.
"""

import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import Tensor, nn

BUG = "own-counts"


def tell_peers(counts: list[int], bug: str | None) -> list[int]:
    """How many rows to expect from each peer."""
    if bug:
        return list(counts)
    told = torch.empty(len(counts), dtype=torch.long)
    dist.all_to_all_single(told, torch.tensor(counts))
    return told.tolist()


def exchange(rows: Tensor, room: int, sent: list[int], expected: list[int]) -> Tensor:
    """Rows in fixed slots of `room`, as a layer with a capacity sends them."""
    slots = torch.zeros(2, room, rows.shape[1])
    for peer, part in enumerate(rows.split(sent)):
        slots[peer, : len(part)] = part
    landed = torch.empty_like(slots)
    dist.all_to_all_single(landed, slots)
    return torch.cat([landed[peer, :count] for peer, count in enumerate(expected)])


class Route(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, room, sent, expected):
        ctx.sizes = room, expected, sent
        return exchange(rows, room, sent, expected)

    @staticmethod
    def backward(ctx, grad):
        return exchange(grad.contiguous(), *ctx.sizes), None, None, None


class Layer(nn.Module):
    def __init__(self, rank: int, bug: str | None) -> None:
        super().__init__()
        self.bug = bug
        self.gate = nn.Linear(64, 2)
        self.expert = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
        for parameter in self.expert.parameters():
            parameter.data += 0.01 * rank

    def forward(self, x: Tensor) -> Tensor:
        score, chosen = self.gate(x).softmax(1).max(1)
        order = chosen.argsort(stable=True)
        sent = torch.bincount(chosen, minlength=2).tolist()
        expected = tell_peers(sent, self.bug)
        arrived = Route.apply(x[order], len(x), sent, expected)
        back = Route.apply(self.expert(arrived), len(x), expected, sent)
        return score[:, None] * torch.zeros_like(x).index_copy(0, order, back)


def work(rank: int, meeting: str, args: argparse.Namespace) -> None:
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    torch.manual_seed(args.seed)
    layer, head = Layer(rank, args.bug), nn.Linear(64, 10)
    digits = load_digits()
    x, y = torch.tensor(digits.data).float() / 16, torch.tensor(digits.target)
    shared = [*layer.gate.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=3e-3)
    draw = torch.Generator().manual_seed(2 * args.seed + rank)
    for step in range(1, args.steps + 1):
        rows = torch.randint(len(x), (48,), generator=draw)
        loss = nn.functional.cross_entropy(head(x[rows] + layer(x[rows])), y[rows])
        optimizer.zero_grad()
        loss.backward()
        for parameter in shared:
            dist.all_reduce(parameter.grad)
            parameter.grad /= 2
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--bug", choices=[BUG])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (f"file://{os.path.join(folder, 'meeting')}", args), nprocs=2)
