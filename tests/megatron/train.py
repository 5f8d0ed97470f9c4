"""Starts the ranks of a job that megatron-core trains on CPU, in the layout that is asked for.

    python tests/megatron/train.py tp=2,sp [--start spawn|fork] [--report losses.json] [--measure costs.json] [--bug NAME]

Under torchrun each process is a rank; otherwise the script starts its ranks. The first rank prints what each step's
loss and gradient norm were, or that its update was left out. A bug is one of `tests/megatron/bugs`. With TESTS_ON_GPU=1
each rank trains on a GPU of its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.megatron.cpu import ON_GPU, run_on_cpu
from tests.megatron.layouts import Layout

run_on_cpu()


def prepare(bug: str | None) -> None:
    """Import all that a rank needs, with a bug in it if one is asked for."""
    if bug:
        importlib.import_module(f"tests.megatron.bugs.{bug}").put_in()
    importlib.import_module("tests.megatron.job")


def work(rank: int, method: str, args: argparse.Namespace) -> None:
    """One rank, from the start of the process group to its end."""
    import torch
    import torch.distributed as dist
    from megatron.core import parallel_state

    if args.start != "fork":
        prepare(args.bug)

    from tests.megatron.job import train
    from tests.megatron.measured import Measured

    layout: Layout = args.layout

    torch.set_num_threads(1)
    if ON_GPU:
        torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl" if ON_GPU else "gloo", init_method=method, rank=rank, world_size=layout.world
    )
    measured = Measured()
    made = train(layout, measured.stepped)
    if rank == 0:
        if args.measure:
            Path(args.measure).write_text(json.dumps(measured.costs))
        for number, one in enumerate(made, 1):
            norm = one["norm"]
            update = "left out" if norm is None else f"norm {norm:.5f}"
            print(f"step {number}: loss {one['loss']:.5f}, {update}", flush=True)
        if args.report:
            Path(args.report).write_text(json.dumps(made))
    dist.barrier()
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()


def run_ranks(context: Any, count: int, work: Callable[..., None], *args: Any) -> int:
    """Run `work(rank, method, *args)` in so many processes, which meet by `method`; the worst exit status."""
    with tempfile.TemporaryDirectory() as folder:
        method = f"file://{folder}/meeting"
        ranks = [context.Process(target=work, args=(rank, method, *args)) for rank in range(count)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    return max(abs(rank.exitcode or 0) for rank in ranks)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("layout", type=Layout.parse)
    parser.add_argument("--start", choices=["spawn", "fork"], default="fork")
    parser.add_argument("--report", help="losses and gradient norms, as JSON")
    parser.add_argument("--measure", help="what each step cost the first rank, as JSON")
    parser.add_argument("--bug")
    args = parser.parse_args()
    if args.start == "fork":
        prepare(args.bug)  # once, and not in each rank
    if "RANK" in os.environ:
        return work(int(os.environ["RANK"]), "env://", args)
    if args.layout.world == 1:
        with tempfile.TemporaryDirectory() as folder:
            return work(0, f"file://{folder}/meeting", args)
    context = multiprocessing.get_context(args.start)
    sys.exit(run_ranks(context, args.layout.world, work, args))


if __name__ == "__main__":
    main()
