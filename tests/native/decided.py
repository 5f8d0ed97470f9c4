"""Clean jobs that together decide the rules of the packs of the sweep, so that no rule is idle in all sound jobs.

    python -m tests.native.decided

It prints for each job the rules that it is the first to decide, and then those that none decides. The exit status is 1 if these
are not those of `UNDECIDED`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from tests.native.sweep import swept
from tests.sweeps import rules_of, undecided

PACKS = ("communication", "data_parallel", "checkpoints")
"""The essentials are about the loop of any script: `tests/rules` has their clean jobs."""
DECIDING = (
    "replicated plain",
    "replicated by_hand",
    "replicated resumed",
    "replicated clip",
    "replicated one_updates",
    "sharded saved",
    "sharded accumulate",
    "tensor_parallel loss",
    "tensor_parallel with_averages",
    "pipelines 1f1b",
)
"""Jobs of the sweep."""

UNDECIDED: Mapping[str, str] = {
    "std.checkpoint.checkpoints_hold_the_whole_model": "no job saves a state dict of a model by `torch.save` or safetensors",
    "std.checkpoint.saved_buffers_are_finite": "no job that saves has a buffer",
    "std.resume.ranks_save_to_files_of_their_own": "no job saves a file for each rank; `tests/rules/resumed_parts_job.py` does",
    "std.resume.ranks_go_on_from_files_of_their_own": "no job resumes from a file for each rank; `tests/rules/resumed_parts_job.py` does",
    "std.communication.ranks_update_in_the_same_steps": "all ranks make equally many collectives in a step; those of Megatron's pipelines do not",
    "std.communication.split_sizes_fit": "no job sends parts of unequal size; Megatron's experts do",
    "std.data_parallel.constant_buffers_agree": "the only buffers are statistics, which change",
    "std.replicas.ranks_learn_from_one_another": "no job without wrappers starts with different weights",
    "std.replicas.ranks_without_updates_keep_up": "no rank is in its first step while another is beyond its tenth",
}
"""Rule -> why no job of the sweep decides it."""


def main() -> None:
    sys.exit(undecided(DECIDING, swept, rules_of(*PACKS)) != UNDECIDED.keys())


if __name__ == "__main__":
    main()
