"""A job of megatron-core that saves its state after its last step; started again, it loads that and goes on.

    python tests/megatron/resumed.py tp=2 FOLDER --way files|shards [--bug NAME] [--report losses.json]

`files`: each rank has a file of its own, as in Megatron-LM's format `torch`. `shards`: `dist_checkpointing`, one checkpoint of all ranks.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.megatron.cpu import run_on_cpu
from tests.megatron.layouts import Layout

run_on_cpu()

if TYPE_CHECKING:
    from tests.megatron.job import Job

BUGS = (
    "moments_left_out",
    "moments_left_out_on_one_rank",
    "piece_of_another_rank",
    "layer_left_out",
    "layer_removed",
    "main_copy_left_out",
    "stale_weights",
    "streams_of_another_rank",
)
WHOLE = {"distrib_optim_sharding_type": "fully_reshardable"}
"""How the distributed optimizer is to write its state: whole tensors, so that other layouts can read it."""


def state_of(job: Job) -> dict[str, Any]:
    """What is saved beside models and optimizer, alike on all ranks."""
    import torch

    return {
        "iteration": job.layout.steps,
        "opt_param_scheduler": job.schedule.state_dict(),
        "rng": torch.get_rng_state(),
    }


def streams() -> dict[str, Any]:
    """The named random streams of this rank."""
    from megatron.core import tensor_parallel

    states: dict[str, Any] = tensor_parallel.get_cuda_rng_tracker().get_states()
    return states


def restore(job: Job, state: dict[str, Any]) -> None:
    """Bring back what `state_of` and `streams` gave."""
    import torch
    from megatron.core import tensor_parallel

    job.schedule.load_state_dict(state["opt_param_scheduler"])
    torch.set_rng_state(state["rng"])
    tensor_parallel.get_cuda_rng_tracker().set_states(state["streams"])


def models_of(job: Job) -> dict[str, Any]:
    """The chunks without what is around them, each under the key that it is saved under."""
    from megatron.core.utils import unwrap_model

    chunks = unwrap_model(job.chunks)
    if len(chunks) == 1:
        return {"model": chunks[0]}
    return {f"model{number}": chunk for number, chunk in enumerate(chunks)}


class Files:
    """A file of each shard, which the first of those ranks that hold copies writes, and one of the distributed optimizer."""

    def __init__(self, folder: Path, bug: str | None) -> None:
        self.folder, self.bug = folder, bug

    def _at(self, name: str, first: bool = False) -> Path:
        """Where a file of this rank lies, or one of the first of those that hold the other shards."""
        from megatron.core import parallel_state

        piece = 0 if first else parallel_state.get_tensor_model_parallel_rank()
        stage = parallel_state.get_pipeline_model_parallel_rank()
        return self.folder / f"mp_rank_{piece:02}_{stage:03}" / name

    def save(self, job: Job) -> None:
        import torch
        from megatron.core import parallel_state

        first = parallel_state.get_data_parallel_rank() == 0
        at = self._at("model_optim_rng.pt")
        at.parent.mkdir(parents=True, exist_ok=True)
        if job.layout.zero:
            job.optimizer.save_parameter_state(str(self._at("distrib_optim.pt")))
        if first:
            models = {
                key: model.state_dict_for_save_checkpoint() for key, model in models_of(job).items()
            }
            rest = {"streams": streams(), "optimizer": job.optimizer.state_dict()}
            torch.save(state_of(job) | models | rest, at)

    def load(self, job: Job) -> None:
        import torch

        first = self.bug == "piece_of_another_rank"
        state = torch.load(self._at("model_optim_rng.pt", first), weights_only=False)
        if self.bug == "streams_of_another_rank":
            other = torch.load(self._at("model_optim_rng.pt", first=True), weights_only=False)
            state["streams"] = other["streams"]
        load_models(job, state, self.bug)
        restore(job, state)
        if has_moments(self.bug):
            job.optimizer.load_state_dict(state["optimizer"])
            if job.layout.zero:
                job.optimizer.load_parameter_state(str(self._at("distrib_optim.pt")))
        elif self.bug != "main_copy_left_out":
            job.optimizer.reload_model_params()


class Shards:
    """One checkpoint of all ranks, by megatron-core's `dist_checkpointing`."""

    def __init__(self, folder: Path, bug: str | None) -> None:
        self.folder, self.bug = folder, bug

    def _sharded(self, job: Job, loading: bool) -> dict[str, Any]:
        from megatron.core import parallel_state
        from megatron.core.dist_checkpointing.mapping import ShardedObject

        models = {key: model.sharded_state_dict() for key, model in models_of(job).items()}
        of_all = models["model"] if len(models) == 1 else models
        optimizer = job.optimizer.sharded_state_dict(of_all, is_loading=loading, metadata=WHOLE)
        piece = parallel_state.get_tensor_model_parallel_rank()
        place = (parallel_state.get_pipeline_model_parallel_rank(), piece)
        copy = parallel_state.get_data_parallel_rank()
        sizes = (job.layout.pp, job.layout.tp)
        own = ShardedObject("streams", streams(), sizes, place, replica_id=copy)
        return models | {"optimizer": optimizer, "streams": own}

    def save(self, job: Job) -> None:
        from megatron.core import dist_checkpointing

        state = state_of(job) | self._sharded(job, loading=False)
        dist_checkpointing.save(state, str(self.folder))

    def load(self, job: Job) -> None:
        from megatron.core import dist_checkpointing

        state = dist_checkpointing.load(self._sharded(job, loading=True), str(self.folder))
        load_models(job, state, self.bug)
        restore(job, state)
        if has_moments(self.bug):
            job.optimizer.load_state_dict(state["optimizer"])
        elif self.bug != "main_copy_left_out":
            job.optimizer.reload_model_params()


WAYS = {"files": Files, "shards": Shards}


def has_moments(bug: str | None) -> bool:
    """This rank loads the state of its optimizer."""
    import torch.distributed as dist

    if bug == "moments_left_out_on_one_rank":
        return dist.get_rank() == 0
    return bug not in ("moments_left_out", "main_copy_left_out")


def load_models(job: Job, state: dict[str, Any], bug: str | None) -> None:
    """Load each chunk."""
    if bug == "stale_weights":
        return
    for key, model in models_of(job).items():
        given = state[key]
        if bug == "layer_left_out":
            given = {name.replace("layers.1.", "layer.1."): each for name, each in given.items()}
        if bug == "layer_removed":
            given = {name: each for name, each in given.items() if "layers.1." not in name}
        model.load_state_dict(given, strict=bug not in ("layer_left_out", "layer_removed"))


def work(rank: int, method: str, args: argparse.Namespace) -> None:
    """One rank, from the start of the process group to its end."""
    import torch
    import torch.distributed as dist
    from megatron.core import parallel_state

    from tests.megatron.job import job_of

    torch.set_num_threads(1)
    layout: Layout = args.layout
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=layout.world)
    way = WAYS[args.way](args.folder, args.bug)
    resumed = any(args.folder.iterdir())
    dist.barrier()
    job = job_of(layout, layout.steps if resumed else 0)
    if resumed:
        way.load(job)
    made = [job.step() for _ in range(layout.steps)]
    if not resumed:
        way.save(job)
    if rank == 0:
        for number, one in enumerate(made, 1):
            print(f"step {number}: loss {one['loss']:.5f}", flush=True)
        if args.report:
            Path(args.report).write_text(json.dumps(made))
    dist.barrier()
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()


def main() -> None:
    from tests.megatron.train import run_ranks

    parser = argparse.ArgumentParser()
    parser.add_argument("layout", type=Layout.parse)
    parser.add_argument("folder", type=Path, help="the checkpoint; it is there, and empty at first")
    parser.add_argument("--way", choices=WAYS, default="files")
    parser.add_argument("--report", help="losses and gradient norms, as JSON")
    parser.add_argument("--bug", choices=BUGS)
    args = parser.parse_args()
    context = multiprocessing.get_context("fork")
    sys.exit(run_ranks(context, args.layout.world, work, args))


if __name__ == "__main__":
    main()
