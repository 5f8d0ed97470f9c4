"""Jobs of this folder compared with one device, clean and with a fault that leaves ranks in agreement, and what is found.

    python -m tests.native.equivalences [TEXT ...] > docs/native_equivalences.md

A text chooses the jobs whose name begins with it. The exit status is 1 if something else is found than `COMPARED` says.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.equivalence.judged import Job, References, first, found_of
from tests.native.sweep import ON_FOUR
from tspec.equivalence.localize import Localization
from tspec.equivalence.outcome import Outcome

HERE = Path(__file__).resolve().parent
HEAD = """# torch's own modes of parallelism, compared with one device

Each row is a job of `tests/native` (a script and its `--kind`), clean or with one of [the faults](native_faults.md) for which
no rule speaks: their ranks agree. Two steps are [compared with those of one device](equivalence.md), by an equivalence in the file beside the script
(`replicated.tspec`, `sharded.tspec`, `tensor_parallel.tspec`, `pipelines.tspec`). The reference has the data of all ranks, and no fault.
*First wrong* is the first tensor in the order of the run. *Wrong by itself* is the module that is wrong there, or worst, when it is given the
reference's inputs and gradients, with the evidence. Gradients that are reduced in bfloat16 (`reduces_low`) are not found: their error is within the round-off of that
precision. Printed by:

    python -m tests.native.equivalences > docs/native_equivalences.md

| job | bug | equivalence | tensors | first wrong | wrong by itself |
| --- | --- | --- | --- | --- | --- |"""
EQUIVALENCES = {
    "replicated": "replicas_are_one_device",
    "sharded": "shards_are_one_device",
    "sharded mixed": "shards_in_bfloat16_are_one_device",
    "sharded hybrid": "copies_of_shards_are_one_device",
    "tensor_parallel": "cut_layers_are_one_device",
    "tensor_parallel sequence": "cut_sequences_are_one_device",
    "tensor_parallel with_shards": "cut_layers_in_shards_are_one_device",
    "pipelines": "stages_are_one_device",
    "pipelines tied": "tied_stages_are_one_device",
}
"""The equivalence of a job, or of all other jobs of its script."""


def compared(job: str, bug: str = "", found: str = "nothing", more: str = "-") -> Job:
    """A job of this folder beside one device."""
    script, kind = job.split()
    equivalence = EQUIVALENCES.get(job) or EQUIVALENCES[script]
    ranks = 4 if job in ON_FOUR else 2
    options = f"--kind {kind}"
    return Job(script, equivalence, options, bug, found, more, ranks, HERE, chooses="--bug")


COMPARED = (
    compared("replicated plain"),
    compared(
        "replicated plain",
        "divided_twice",
        "param_grads embed.weight, step 1",
        "all parameters: gradients (the candidate is 0.5 times the reference)",
    ),
    compared("replicated by_hand"),
    compared(
        "replicated by_hand",
        "summed",
        "param_grads embed.weight, step 1",
        "all parameters: gradients (the candidate is 2 times the reference)",
    ),
    compared("sharded fully"),
    compared(
        "sharded fully",
        "stays_gathered",
        "params embed.weight, step 1",
        "embed: update of its parameters",
    ),
    compared("sharded accumulate"),
    compared(
        "sharded accumulate",
        "cleared",
        "param_grads embed.weight, step 1",
        "all parameters: gradients",
    ),
    compared("sharded mixed"),
    compared("sharded mixed", "reduces_low"),
    compared("sharded hybrid"),
    compared(
        "sharded hybrid",
        "replicas_forgotten",
        "param_grads embed.weight, step 1",
        "all parameters: gradients (the mean of the replicas is the reference)",
    ),
    compared("tensor_parallel plain"),
    compared(
        "tensor_parallel plain",
        "bias_twice",
        "outputs blocks.0.down, step 1, micro-batch 1",
        "blocks.0.down: forward pass, gradients of its parameters (the candidate is 2 times the reference)",
    ),
    compared("tensor_parallel sequence"),
    compared(
        "tensor_parallel sequence",
        "wrong_layout",
        "output_grads norm, step 1, micro-batch 1",
        "head: backward pass",
    ),
    compared("tensor_parallel with_shards"),
    compared(
        "tensor_parallel with_shards",
        "bias_twice",
        "outputs blocks.0.down, step 1, micro-batch 1",
        "blocks.0.down: forward pass, gradients of its parameters (the candidate is 2 times the reference)",
    ),
    compared("pipelines tied"),
    compared(
        "pipelines tied",
        "unsummed",
        "param_grads encoder.matrix, step 1",
        "encoder: gradients of its parameters (the sum of the replicas is the reference)",
    ),
    compared("pipelines 1f1b"),
    compared(
        "pipelines 1f1b",
        "not_scaled",
        "param_grads embed.weight, step 1",
        "all parameters: gradients (the candidate is 4 times the reference)",
    ),
    compared(
        "pipelines 1f1b",
        "repeated",
        "inputs embed, step 1, micro-batch 2",
        "the script: what it hands to Stage, loss, backward pass (the candidate is the reference of step 1, micro-batch 1)",
    ),
)


def name_of(job: Job) -> str:
    """As it is chosen, and as the table of faults names it."""
    kind = job.options.removeprefix("--kind ")
    return f"{job.script} {kind} {job.fault}".strip()


def begins(job: Job) -> str:
    """The begin of its line of the table."""
    bug = f"`{job.fault}`" if job.fault else "none"
    return f"| `{job.script} {job.options.removeprefix('--kind ')}` | {bug} | `{job.equivalence}` |"


def row(job: Job, found: Outcome, alone: Localization | None) -> str:
    """Its line of the table."""
    suspects = alone.suspects if alone else ()
    named = [each for each in suspects if first(found) in map(str, each.tensors)] or suspects
    blamed = "-"
    for each in named[:1]:
        says = f" ({each.evidence.says})" if each.evidence.says else ""
        blamed = f"{each.module or 'the script'}: {each.part}{says}"
    return f"{begins(job)} {len(found.comparisons)} | {first(found)} | {blamed} |"


def ends(job: Job) -> str:
    """The end of its line: what is to be found."""
    return f"| {job.found} | {job.more} |"


def chosen(texts: Iterable[str]) -> list[Job]:
    """The jobs whose name begins with one of some texts, all if there is none."""
    texts = tuple(texts) or ("",)
    return [job for job in COMPARED if name_of(job).startswith(texts)]


def main() -> int:
    """Print the table."""
    references: References = {}
    others = []
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as name:
        for number, job in enumerate(chosen(sys.argv[1:])):
            folder = Path(name, str(number))
            folder.mkdir()
            printed = row(job, *found_of(job, references, folder))
            print(printed, flush=True)
            if not printed.endswith(ends(job)):
                others.append(f"{name_of(job)}: {ends(job)} was expected")
    for each in others:
        print(each, file=sys.stderr)
    return int(bool(others))


if __name__ == "__main__":
    sys.exit(main())
