"""How ranks exchange packets with Gloo: a gather and a broadcast of all, as tspec does, and Gloo's all-gather.

    python benchmarks/gathering.py [RANKS...]

It prints milliseconds for a packet of 8 KB of each rank, on this machine, and their ratio.
"""

import multiprocessing
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from tspec.runtime.ranks.transport import GlooGroup

SIZE, CALLS, ROUNDS = 8192, 100, 5


def milliseconds(call: Callable[[], object]) -> float:
    """The median time of a call over some rounds."""
    found = []
    for _ in range(ROUNDS):
        dist.barrier()
        begun = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter() - begun) / CALLS * 1e3)
    return statistics.median(found)


def measure(rank: int, world: int, port: int) -> None:
    """Measure both on one rank; the first prints."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world
    )
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    mine = torch.zeros(SIZE, dtype=torch.uint8)
    rows = [torch.zeros_like(mine) for _ in range(world)]
    group, leaves = GlooGroup(backend, rank, world), threading.Event()
    ours = milliseconds(lambda: group.gathered(mine, leaves))
    theirs = milliseconds(lambda: backend.allgather([rows], [mine]).wait())
    if rank == 0:
        print(
            f"  {world} ranks: {ours:.2f} ms gather and broadcast, {theirs:.2f} ms all-gather:"
            f" {ours / theirs:.2f} of its time",
            flush=True,
        )
    dist.destroy_process_group()


def main() -> None:
    """Print a line for each number of ranks."""
    context = multiprocessing.get_context("spawn")
    for world in map(int, sys.argv[1:] or ("2", "4", "8")):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        ranks = [context.Process(target=measure, args=(rank, world, port)) for rank in range(world)]
        for each in ranks:
            each.start()
        for each in ranks:
            each.join()


if __name__ == "__main__":
    main()
