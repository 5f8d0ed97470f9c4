"""Starts the ranks of a job that megatron-core trains on CPU, in the layout that is asked for.

    python tests/megatron/train.py tp=2,sp [--start spawn|fork] [--report losses.json]

Under torchrun each process is a rank; otherwise the script starts its ranks. The first rank prints what each step's
loss and gradient norm were.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.megatron.cpu import run_on_cpu
from tests.megatron.layouts import Layout

run_on_cpu()


def work(rank: int, method: str, layout: Layout, report: str | None) -> None:
    """One rank, from the start of the process group to its end."""
    import torch
    import torch.distributed as dist
    from megatron.core import parallel_state

    from tests.megatron.job import train

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=layout.world)
    made = train(layout)
    if rank == 0:
        for number, one in enumerate(made, 1):
            print(f"step {number}: loss {one['loss']:.5f}, norm {one['norm']:.5f}", flush=True)
        if report:
            Path(report).write_text(json.dumps(made))
    dist.barrier()
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("layout", type=Layout.parse)
    parser.add_argument("--start", choices=["spawn", "fork"], default="fork")
    parser.add_argument("--report")
    args = parser.parse_args()
    if "RANK" in os.environ:
        return work(int(os.environ["RANK"]), "env://", args.layout, args.report)
    with tempfile.TemporaryDirectory() as folder:
        start(f"file://{folder}/meeting", args)


def start(method: str, args: argparse.Namespace) -> None:
    """Run each rank in a process of its own, and end with the worst exit status."""
    if args.layout.world == 1:
        return work(0, method, args.layout, args.report)
    if args.start == "fork":
        importlib.import_module("tests.megatron.job")  # once, and not in each rank
    context = multiprocessing.get_context(args.start)
    ranks = [
        context.Process(target=work, args=(rank, method, args.layout, args.report))
        for rank in range(args.layout.world)
    ]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    sys.exit(max(abs(rank.exitcode or 0) for rank in ranks))


if __name__ == "__main__":
    main()
