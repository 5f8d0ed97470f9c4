"""Clean jobs that together decide the rules of std.megatron and std.communication, so that no rule is idle in all sound jobs.

    python -m tests.megatron.decided

It prints for each job the rules that it is the first to decide, and then those that none decides. The exit status is 1 if these
are not those of `UNDECIDED`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from tests.megatron.sweep import LLAMA, MOE, swept
from tests.sweeps import rules_of, undecided

PACKS = ("megatron", "communication")
DECIDING = (
    "tp=2,sp,recompute,dropout",
    "dp=2,zero,fp16",
    "dp=2,frozen",
    "pp=2,virtual=2",
    f"tp=2,{LLAMA},untied",
    f"cp=2,{LLAMA},untied",
    f"dp=4,{MOE}",
    "tp=2,sp,experts=4,etp=2,bias",
)
"""Layouts of the sweep."""

UNDECIDED: Mapping[str, str] = {
    "std.megatron.resumed_updates_have_moments": "no job of the sweep goes on from a checkpoint; `test_resumed.py` has such jobs",
    "std.communication.ranks_reduce_in_one_order": "megatron-core reduces buffers of many gradients, and no tensor that has a name",
}
"""Rule -> why no layout of the sweep decides it."""


def main() -> None:
    sys.exit(undecided(DECIDING, swept, rules_of(*PACKS)) != UNDECIDED.keys())


if __name__ == "__main__":
    main()
