"""All modes of torch's own parallelism in clean jobs, with the packs that ship: none of them is to report anything.

    python -m tests.native.sweep [--only TEXT] > docs/native_sweep.md

It runs each job of `CLEAN` under `tspec run` and prints a row for it; the exit status is 1 if any has a finding.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests import sweeps
from tests.sweeps import Swept

OPENING = """# Clean jobs in torch's own modes of parallelism

Each row is a job of torch alone on CPU and gloo (`tests/native`: a script and its `--kind`), with nothing put in, under the
packs essentials, communication, data_parallel and checkpoints (without data_parallel where replicas are averaged now and then).
*Decided* are instances of rules. Seconds are those of a machine that had other work. [What is put into these jobs](native_faults.md)
is on a page of its own. Printed by:

    python -m tests.native.sweep > docs/native_sweep.md

Not all rows are of one run: a job is run again by itself (`--only`) where it or a rule has changed, so seconds and what
is decided are those of several states of the packs.

"""
HERE = Path(__file__).resolve().parent
PACKS = ("essentials", "communication", "data_parallel", "checkpoints")

KINDS = {
    "replicated": (
        *("plain", "views", "static", "accumulate", "unused", "half", "powersgd", "join", "zero"),
        "join_half",
        *("checkpointed", "autocast", "clip", "averaged_statistics", "own_statistics", "resumed"),
        *("saved", "by_hand", "one_updates", "local", "outer", "replicate", "groups", "plateau"),
        "one_updates_parts",
        "compiled",
    ),
    "sharded": (
        *(
            "fully",
            "kept",
            "mixed",
            "accumulate",
            "clip",
            "checkpointed",
            "saved",
            "uneven",
            "narrow",
        ),
        *("hybrid", "flat", "flat_kept", "flat_clip", "flat_hybrid", "compiled"),
        "flat_accumulate",
    ),
    "tensor_parallel": (
        "plain",
        "sequence",
        "loss",
        "clip",
        "with_shards",
        "with_averages",
        "table",
    ),
    "pipelines": (
        *("gpipe", "1f1b", "interleaved", "zero_bubble", "breadth_first", "v_shaped", "traced"),
        *("clip", "tied"),
        "with_replicas",
    ),
}
"""What each script's `--kind` may be."""

ON_FOUR = {
    "sharded hybrid",
    "sharded flat_hybrid",
    "tensor_parallel with_shards",
    "tensor_parallel with_averages",
    "pipelines with_replicas",
}
APART = {"replicated local", "replicated outer"}
"""Jobs in which replicas differ between two averages by right: the pack data_parallel is not meant for them."""
LONG = (
    *(f"replicated {kind} --steps 25" for kind in KINDS["replicated"]),
    "sharded fully --steps 25",
    "sharded narrow --steps 25",
    "sharded hybrid --steps 25",
    "sharded flat_clip --steps 25",
    "sharded flat_hybrid --steps 25",
    "sharded compiled --steps 25",
    "tensor_parallel sequence --steps 50",
    "tensor_parallel with_shards --steps 50",
    "tensor_parallel with_averages --steps 50",
    "pipelines 1f1b --steps 50",
    "pipelines interleaved --steps 50",
    "pipelines zero_bubble --steps 50",
    "pipelines with_replicas --steps 50",
)
"""Fifty steps, for rules that need many. The first two scripts have two epochs."""
CLEAN = (*(f"{script} {kind}" for script, kinds in KINDS.items() for kind in kinds), *LONG)
"""Jobs without a fault: a script, its kind, and other options."""


def command(job: str) -> tuple[str, ...]:
    """The script of a job, and its options."""
    script, kind, *options = job.split()
    return str(HERE / f"{script}.py"), "--kind", kind, *options


def kind_of(job: str) -> str:
    """A job without options besides its kind."""
    return " ".join(job.split()[:2])


def packs_of(job: str) -> tuple[str, ...]:
    """The packs that are meant for a job."""
    return tuple(pack for pack in PACKS if kind_of(job) not in APART or pack != "data_parallel")


def swept(job: str, folder: Path) -> Swept:
    """Run the packs on a job of `CLEAN`. What the report holds goes to a folder."""
    ranks = 4 if kind_of(job) in ON_FOUR else 2
    return sweeps.swept(job, ranks, packs_of(job), command(job), folder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="jobs that begin so")
    args = parser.parse_args()
    sweeps.print_table((job for job in CLEAN if job.startswith(args.only)), swept, OPENING)


if __name__ == "__main__":
    main()
