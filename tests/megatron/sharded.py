"""Prints how megatron-core itself says that each parameter is cut: its sharded state dictionary, as JSON lines.

    python tests/megatron/sharded.py tp=2,swiglu FOLDER

Each rank writes FOLDER/RANK.json: name, shape and offset in the full tensor, shape on the rank.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.megatron.cpu import run_on_cpu
from tests.megatron.layouts import Layout

run_on_cpu()


def work(rank: int, method: str, layout: Layout, folder: str) -> None:
    """One rank: make the model, and write what it says of its shards."""
    import torch
    import torch.distributed as dist
    from megatron.core import parallel_state, tensor_parallel

    from tests.megatron.job import chunks_of, config_of

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=layout.world)
    parallel_state.initialize_model_parallel(
        layout.tp,
        layout.pp,
        virtual_pipeline_model_parallel_size=layout.virtual if layout.virtual > 1 else None,
        context_parallel_size=layout.cp,
        expert_model_parallel_size=layout.ep,
        expert_tensor_parallel_size=layout.etp,
    )
    tensor_parallel.model_parallel_cuda_manual_seed(1234)
    chunks = chunks_of(config_of(layout), layout)
    found = [each for chunk in chunks for each in shards(chunk.module.sharded_state_dict())]
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    dist.barrier()
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()


def shards(state: object) -> list[dict[str, object]]:
    """The shards in a state dictionary; those that a factory makes (a gated MLP's) are made."""
    from megatron.core.dist_checkpointing.mapping import (
        ShardedTensor,
        ShardedTensorFactory,
        apply_factories,
    )

    if isinstance(state, ShardedTensorFactory):
        made = {"": state}
        apply_factories(made)
        return shards(made)
    if isinstance(state, ShardedTensor):
        return [
            {
                "key": state.key,
                "full": list(state.global_shape),
                "offset": list(state.global_offset),
                "local": list(state.local_shape),
                "prepended": state.prepend_axis_num,
            }
        ]
    inside = state.values() if isinstance(state, dict) else state if isinstance(state, list) else ()
    return [found for each in inside for found in shards(each)]


def main() -> None:
    from tests.megatron.train import run_ranks

    layout, folder = Layout.parse(sys.argv[1]), sys.argv[2]
    context = multiprocessing.get_context("fork")
    sys.exit(run_ranks(context, layout.world, work, layout, folder))


if __name__ == "__main__":
    main()
