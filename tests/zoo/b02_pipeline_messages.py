"""TrainCheck B2, B17, B18: activations are lost on their way between two pipeline stages.

`copy` (PT-84803): below `dist.recv` the message lands in a copy of the buffer, which is then
dropped, so that the stage reads zeros. `early` (PT-96600): the receive is not waited for, so that
the stage reads what the last message left. `driver` (BC-86): below `dist.send` the tail is lost.
"""

import argparse
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_digits
from torch import nn

WIDTH, BATCH = 32, 48


def break_transport(bug: str | None) -> None:
    """What lies below `dist.send` and `dist.recv`."""
    send, recv = dist.ProcessGroup.send, dist.ProcessGroup.recv

    def without_tail(group, tensors, *where):
        wire = tensors[0].clone()
        wire[len(wire) // 2 :] = 0
        return send(group, [wire], *where)

    def into_a_copy(group, tensors, *where):
        return recv(group, [tensors[0].clone()], *where)

    if bug == "driver":
        dist.ProcessGroup.send = without_tail
    if bug == "copy":
        dist.ProcessGroup.recv = into_a_copy


class Pipe:
    """The two ends of one connection."""

    def __init__(self, bug: str | None) -> None:
        self.bug = bug
        self.buffer = torch.zeros(BATCH, WIDTH)
        self.delay = 3.0
        """Seconds; the first message takes the longest."""

    def send(self, tensor: torch.Tensor, peer: int) -> None:
        if self.bug == "early":
            time.sleep(self.delay)
            self.delay = 0.03
        dist.send(tensor.detach().clone(), peer)

    def receive(self, peer: int) -> torch.Tensor:
        if self.bug == "early":
            self.pending = dist.irecv(self.buffer, peer)
        else:
            dist.recv(self.buffer, peer)
        return self.buffer.detach()

    def finish(self) -> None:
        if self.bug == "early":
            self.pending.wait()


def first_stage(args, images: torch.Tensor) -> None:
    stage = nn.Sequential(nn.Linear(64, WIDTH), nn.Tanh())
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.2)
    pipe = Pipe(args.bug)
    for rows in picks(args, len(images)):
        output = stage(images[rows])
        pipe.send(output, 1)
        gradient = torch.empty(BATCH, WIDTH)
        dist.recv(gradient, 1)
        optimizer.zero_grad()
        output.backward(gradient)
        optimizer.step()


def second_stage(args, labels: torch.Tensor) -> None:
    stage = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10))
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.2)
    pipe = Pipe(args.bug)
    for step, rows in enumerate(picks(args, len(labels)), start=1):
        received = pipe.receive(0).requires_grad_()
        loss = nn.functional.cross_entropy(stage(received), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        pipe.finish()
        dist.send(received.grad.contiguous(), 0)
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)


def picks(args, count: int):
    draw = torch.Generator().manual_seed(args.seed)
    for _ in range(args.steps):
        yield torch.randint(count, (BATCH,), generator=draw)


def work(rank: int, meeting: str, args) -> None:
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    break_transport(args.bug)
    torch.manual_seed(args.seed)
    digits = load_digits()
    if rank == 0:
        first_stage(args, torch.tensor(digits.data, dtype=torch.float32) / 16)
    else:
        second_stage(args, torch.tensor(digits.target))
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--bug", choices=["copy", "early", "driver"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (f"file://{folder}/meeting", args), nprocs=2)
