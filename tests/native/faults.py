"""Faults in the modes of torch's own parallelism, each a `--bug` of a clean job, and what is reported of it first.

    python -m tests.native.faults [--only TEXT] > docs/native_faults.md

It runs each job under the packs of the sweep and prints a row for it; the exit status is 1 if one is not found as said here.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.first_found import Found, first_found, in_words, matches
from tests.native.sweep import command, packs_of

HEAD = """# Faults in torch's own modes of parallelism

Each row is a fault that is put into a [clean job](native_sweep.md) (`tests/native`, `--kind` and `--bug`), and what
the packs essentials, communication, data_parallel and checkpoints report first (without data_parallel where replicas are
averaged now and then). Printed by:

    python -m tests.native.faults > docs/native_faults.md

Not all rows are of one run: a fault is run again by itself (`--only`) where its job or a rule has changed.

Where no rule speaks, all that is known to be a copy agrees, and only a comparison with one device tells:
[a table](native_equivalences.md) has what it says of each of these jobs.

| fault | job | bug | first finding |
| --- | --- | --- | --- |"""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: the job and its `--bug`, what it is, and what is to be reported first, or why nothing is."""

    job: str
    bug: str
    what: str
    found: Found | str
    more: tuple[str, ...] = ()
    """Options of the job."""

    @property
    def name(self) -> str:
        """Of its test."""
        return f"{self.job} {self.bug}"

    @property
    def expected(self) -> Found | None:
        """What is to be reported first; None if nothing is."""
        return None if isinstance(self.found, str) else self.found

    @property
    def begins(self) -> str:
        """Its line of the table without the finding."""
        return f"| {self.what} | `{self.job}` | `{self.bug}` |"

    def row(self, found: Found | None) -> str:
        """Its line of the table."""
        silent = found is None and isinstance(self.found, str)
        return f"{self.begins} {f'none: {self.found}' if silent else in_words(found)} |"


ALIKE = "ranks are wrong together, needs equivalence"
ROUND_OFF = "ranks are wrong together, by no more than the round-off of bfloat16"
UNKNOWN = "nothing says which ranks hold copies, needs equivalence"


FAULTS = (
    # Replicas
    Fault(
        "replicated plain",
        "ignored",
        "DDP is told to ignore the last layer, whose gradients nobody averages.",
        Found("gradients_agree_after_all_reduce", 1, (0, 1), "head.weight"),
    ),
    Fault(
        "replicated plain",
        "unreduced",
        "A communication hook of DDP gives each bucket of gradients back without a reduction.",
        Found("gradients_agree_after_all_reduce", 1, (0, 1), "embed.weight"),
    ),
    Fault(
        "replicated accumulate",
        "unsynced",
        "`no_sync` is around the last micro-batch too.",
        Found("gradients_agree_after_all_reduce", 1, (0, 1), "embed.weight"),
    ),
    Fault(
        "replicated plain",
        "divided_twice",
        "Gradients that DDP has averaged are divided by the number of ranks again.",
        ALIKE,
    ),
    Fault(
        "replicated plain",
        "same_order",
        "`set_epoch` is not called: all epochs have one order.",
        Found("epochs_are_shuffled_anew", 7, (0, 1), "loader.0"),
        ("--epochs", "4"),
    ),
    Fault(
        "replicated plain",
        "same_data",
        "All ranks draw the data of rank 0.",
        Found("ranks_draw_different_batches", 1, (0, 1), ""),
    ),
    Fault(
        "replicated resumed",
        "own_state",
        "One rank resumes with empty moments.",
        Found("optimizer_state_starts_alike", 2, (0, 1), "Tower#2.embed.weight.exp_avg"),
    ),
    Fault(
        "replicated plain",
        "changed_afterwards",
        "One rank clamps a gradient after the reduction.",
        Found("gradients_agree_after_all_reduce", 1, (0, 1), "embed.weight"),
    ),
    Fault(
        "replicated plain",
        "alone_in_group",
        "The process group of DDP holds this rank alone.",
        Found("gradients_agree", 1, (0, 1), "embed.weight"),
    ),
    Fault(
        "replicated by_hand",
        "own_rounding",
        "Each rank draws on its own which weights are rounded up.",
        Found("updates_of_replicas_agree", 1, (0, 1), "embed.weight"),
    ),
    Fault(
        "replicated by_hand",
        "own_seed",
        "Each rank draws its own first weights, and gradients are averaged by hand.",
        Found("parameters_with_one_gradient_start_alike", 1, (0, 1), "embed.weight"),
    ),
    Fault(
        "replicated by_hand",
        "summed",
        "Gradients are added up over ranks, and not averaged.",
        ALIKE,
    ),
    Fault(
        "replicated groups",
        "scaled_rate",
        "The learning rate of one group is multiplied by the rank.",
        Found("updates_of_replicas_agree", 1, (0, 1), "embed.bias"),
    ),
    Fault(
        "replicated plateau",
        "own_loss",
        "Each rank's schedule looks at its own loss.",
        Found("updates_of_replicas_agree", 13, (0, 1), "embed.weight"),
        ("--epochs", "4"),
    ),
    Fault(
        "replicated plain",
        "left_out",
        "One rank leaves an update out.",
        Found("gradients_agree_after_all_reduce", 4, (0, 1), "embed.weight"),
    ),
    Fault(
        "replicated by_hand",
        "left_out",
        "One rank leaves an update out, and gradients are averaged by hand.",
        Found("collectives_match", 4, (0, 1), "collective #24"),
    ),
    Fault(
        "replicated by_hand",
        "left_behind",
        "One rank makes no update.",
        Found("ranks_update_in_the_same_steps", 1, (0, 1), ""),
    ),
    Fault(
        "replicated own_statistics",
        "own_draws",
        "Features that each rank draws for itself are not broadcast (`broadcast_buffers=False`).",
        Found("constant_buffers_agree", 2, (0, 1), "frequencies"),
    ),
    Fault(
        "replicated plain",
        "of_a_copy",
        "The optimizer holds the parameters of a copy of the model.",
        Found("optimizers_hold_parameters_of_a_model", 1, (0, 1), "optimizer.0, embed.weight"),
    ),
    Fault(
        "replicated zero",
        "not_broadcast",
        "`ZeroRedundancyOptimizer` does not broadcast what each rank has updated.",
        Found("updates_of_replicas_agree", 1, (0, 1), "embed.weight"),
    ),
    Fault(
        "replicated join",
        "moments_in_join",
        "The moments of ranks with fewer batches lack the updates of the others; weights alone are broadcast at the end of `join`.",
        Found("updates_of_replicas_agree", 8, (0, 1), "embed.weight"),
    ),
    Fault(
        "replicated local",
        "own_seed",
        "Each rank draws its own first weights, and weights are averaged now and then.",
        Found("averaged_parameters_start_alike", 5, (0, 1), "embed.weight"),
        ("--steps", "12"),
    ),
    # Shards
    Fault(
        "sharded accumulate",
        "unsynced",
        "Gradients are not reduced after the last micro-batch.",
        Found("last_passes_reduce_their_gradients", 1, (0, 1), ""),
    ),
    Fault(
        "sharded accumulate",
        "first_synced",
        "Gradients are reduced after the first micro-batch, and not after the last.",
        Found("last_passes_reduce_their_gradients", 1, (0, 1), ""),
    ),
    Fault(
        "sharded accumulate",
        "cleared",
        "Each micro-batch reduces its gradients, and those before it are cleared.",
        ALIKE,
    ),
    Fault(
        "sharded clip",
        "clipped_by_part",
        "Each rank clips by the norm of its own parts.",
        Found("shards_are_scaled_alike", 2, (0, 1), "optimizer.0"),
    ),
    Fault(
        "sharded hybrid",
        "part_changed",
        "One rank changes its part, of which another rank has a copy.",
        Found("replicas_agree", 5, (1, 3), "head.bias"),
    ),
    Fault(
        "sharded hybrid",
        "replicas_forgotten",
        "Parameters are sharded in each half of the ranks, and nobody averages over the halves.",
        UNKNOWN,
    ),
    Fault(
        "sharded fully",
        "shards_of_one_rank",
        "All ranks load the shards of the first one.",
        Found("shards_have_values_of_their_own", 1, (0, 1), "embed.weight"),
    ),
    Fault(
        "sharded fully",
        "one_left_out",
        "The last norm is in `ignored_params`, and nobody averages its gradients.",
        Found("gradients_agree", 1, (0, 1), "norm.weight"),
    ),
    Fault(
        "sharded fully",
        "stays_gathered",
        "Parameters stay gathered after the backward pass: the next forward pass uses old ones.",
        ALIKE,
    ),
    Fault("sharded mixed", "reduces_low", "Gradients are reduced in bfloat16.", ROUND_OFF),
    Fault(
        "sharded fully",
        "before_sharding",
        "The optimizer holds the parameters from before `fully_shard`.",
        Found(
            "optimizers_hold_parameters_of_a_model", 1, (0, 1), "optimizer.0, optimizer.0.param.0"
        ),
    ),
    # Layers cut over ranks
    Fault(
        "tensor_parallel plain",
        "part_changed",
        "One rank changes its copy of a bias after an update.",
        Found("replicas_agree", 5, (0, 1), "blocks.1.down.bias"),
    ),
    Fault(
        "tensor_parallel plain",
        "other_batches",
        "Ranks that share a model see different data.",
        Found("gradients_agree_after_all_reduce", 1, (0, 1), "blocks.0.down.bias"),
    ),
    Fault(
        "tensor_parallel sequence",
        "own_norms",
        "The last norm is not parallelized: each rank has the gradient of its part of the sequence.",
        Found("gradients_agree", 1, (0, 1), "norm.weight"),
    ),
    Fault(
        "tensor_parallel loss",
        "own_targets",
        "Ranks that have parts of the classes are given targets of other samples.",
        Found("ranks_that_share_classes_have_the_same_targets", 1, (0, 1), "split_loss #0"),
    ),
    Fault(
        "tensor_parallel plain",
        "not_summed",
        "A row-parallel layer's sums are taken for the whole: nobody adds them up.",
        Found("gradients_agree_after_all_reduce", 1, (0, 1), "blocks.0.down.bias"),
    ),
    Fault(
        "tensor_parallel plain", "bias_twice", "A row-parallel layer adds its bias twice.", ALIKE
    ),
    Fault(
        "tensor_parallel sequence",
        "wrong_layout",
        "The head takes a part of the sequence for the whole.",
        ALIKE,
    ),
    Fault(
        "tensor_parallel plain",
        "own_dropout",
        "Ranks draw different dropout masks for one activation.",
        Found("gradients_agree_after_all_reduce", 1, (0, 1), "blocks.0.down.bias"),
    ),
    Fault(
        "tensor_parallel with_averages",
        "axis_left_out",
        "Gradients of a mesh of two axes are not averaged over `dp`.",
        Found("gradients_agree", 1, (0, 1, 2, 3), "embed.weight"),
    ),
    Fault(
        "tensor_parallel with_averages",
        "wrong_axis",
        "Gradients are averaged over the axis along which layers are cut.",
        Found("gradients_agree", 1, (0, 1, 2, 3), "embed.weight"),
    ),
    Fault(
        "tensor_parallel with_averages",
        "pieces_left_out",
        "Gradients of layers that are cut are left out of the average over `dp`.",
        Found("shards_agree_over_dp", 5, (0, 1, 2, 3), "blocks.0.up.weight"),
    ),
    Fault(
        "tensor_parallel with_averages",
        "same_data",
        "All ranks of a mesh of two axes draw the same data.",
        Found("dp_ranks_compute_on_other_data", 1, (0, 1, 2, 3), ""),
    ),
    Fault(
        "tensor_parallel plain",
        "shards_averaged",
        "Gradients are averaged over the ranks along which layers are cut.",
        Found("shards_have_gradients_of_their_own", 1, (0, 1), "blocks.0.up.weight"),
    ),
    Fault(
        "tensor_parallel clip",
        "clipped_by_part",
        "Each rank scales gradients by the norm of its own shards, by hand.",
        Found("gradients_agree_after_all_reduce", 1, (0, 1), "embed.bias"),
    ),
    Fault(
        "tensor_parallel clip",
        "clipped_locally",
        "`clip_grad_norm_` is given the shards on this rank.",
        Found("gradient_norms_agree", 1, (0, 1), ""),
    ),
    # Stages
    Fault(
        "pipelines clip",
        "own_norm",
        "Each stage clips by the norm of its own gradients.",
        Found("gradient_norms_agree", 1, (0, 1), ""),
    ),
    Fault(
        "pipelines clip",
        "norm_not_summed",
        "The norm that each stage is given to clip by is not added up over stages.",
        Found("gradient_norms_agree", 1, (0, 1), ""),
    ),
    Fault(
        "pipelines clip",
        "scaled_by_own_norm",
        "Each stage scales its gradients by their own norm, by hand.",
        Found("parts_are_scaled_alike", 2, (0, 1), "optimizer.0"),
    ),
    Fault(
        "pipelines tied",
        "unsummed",
        "Gradients of a matrix that two stages have in common are not added up.",
        UNKNOWN,
    ),
    Fault(
        "pipelines 1f1b",
        "not_scaled",
        "The mean of micro-batches is taken for a sum (`scale_grads=False`).",
        ALIKE,
    ),
    Fault(
        "pipelines interleaved",
        "forgotten_stage",
        "The optimizer holds the first of a rank's two stages alone.",
        Found(
            "optimizers_hold_all_trainable_parameters", 2, (0, 1), "Stage#2.blocks.2.norm.weight"
        ),
    ),
    Fault("pipelines 1f1b", "repeated", "All micro-batches of a step are the same.", ALIKE),
    Fault(
        "pipelines with_replicas",
        "unwrapped",
        "The last stage is not wrapped in DDP.",
        Found("gradients_agree", 1, (0, 1, 2, 3), "blocks.2.norm.weight"),
    ),
)


def found_of(fault: Fault, report: Path) -> Found | None:
    """Run the job with the fault; what was found first."""
    specs = [f"specs/{pack}" for pack in packs_of(fault.job)]
    return first_found(specs, (*command(fault.job), "--bug", fault.bug, *fault.more), report)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="faults whose names begin so")
    args = parser.parse_args()
    missed = []
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        for fault in FAULTS:
            if not fault.name.startswith(args.only):
                continue
            found = found_of(fault, Path(folder, "report.json"))
            print(fault.row(found), flush=True)
            if not matches(found, fault.expected):
                missed.append(f"{fault.name}: {found} instead of {fault.expected}")
    for one in missed:
        print(one, file=sys.stderr)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
