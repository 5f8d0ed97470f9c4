"""Compares clean jobs of megatron-core with one device by the layouts that ship, and prints a table.

    python -m tests.equivalence.megatron_sweep > docs/megatron_sweep.md

With jobs as arguments it runs these alone. Nothing is put into the package. The status is 1 if a job differs from one device.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.equivalence.forked import forked
from tests.megatron.layouts import Layout
from tests.megatron.shipped import family, of_the_job
from tspec.equivalence.check import compare
from tspec.equivalence.launch import Failed
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.runs import ReferenceRecordings, run_candidate, run_reference
from tspec.equivalence.sides import Trial
from tspec.layout.sizes import sizes_of
from tspec.report.equivalences.wording import not_compared
from tspec.resolve.program.trials import Combined, Noise, Number

TRAIN = Path(__file__).resolve().parents[1] / "megatron/train.py"
PASSES = 2
"""Micro-batches of a rank in the step, on both sides."""
KINDS = (
    *("inputs", "outputs", "input_grads", "output_grads"),
    *("param_grads", "gradient_norms", "params", "buffers", "states", "losses"),
)
NEAR_TIES = 4
"""Perturbed runs of experts in bfloat16. A token whose experts are nearly tied goes to another one in some of them: with
one run two of these jobs were at three times their tolerance, by one token of 64."""

HEAD = """# Clean Megatron jobs against one device

Each row is a job of the released megatron-core 0.16.1 on CPU, with nothing put in, compared with the same model on one rank by a layout
of `specs/megatron/layouts`: inputs and outputs of modules, their gradients, gradients of parameters, parameters and states of
the optimizer after the step, losses. Each configuration runs in float32 and in bfloat16, and some run in float16 too.
[The job's words](design/megatron.md#what-runs) say how it is laid out and which model it has. *Furthest* is the largest error of a
tensor, in parts of what is tolerated. Gradients that [overflowed on both sides](equivalence.md#gradients-that-overflow) are not compared. Printed by:

    python -m tests.equivalence.megatron_sweep > docs/megatron_sweep.md

| job | layout | ranks | tensors | furthest | findings |
| --- | --- | --- | --- | --- | --- |"""

LLAMA = "swiglu,rms,rope,nobias"
MOE = "experts=4,kv=2,swiglu,rms,rope,untied"

CONFIGURATIONS = (
    # Tensor parallelism
    "tp=2",
    "tp=2,untied",
    "tp=2,kv=2",
    "tp=2,rms",
    "tp=2,clipped",
    "tp=2,recompute",
    "tp=4",
    f"tp=2,{LLAMA}",
    f"tp=2,kv=2,untied,{LLAMA}",
    "tp=4,padded,vocabulary=150",
    # Sequence parallelism
    "tp=2,sp",
    "tp=2,sp,recompute",
    "tp=2,sp,qknorm,kv=2",
    "tp=4,sp,untied",
    f"tp=2,sp,kv=2,{LLAMA}",
    # Pipelines
    "pp=2",
    "pp=2,untied",
    "pp=2,virtual=2",
    f"pp=2,virtual=2,kv=2,untied,{LLAMA}",
    "pp=2,first=1",
    "pp=2,recompute,kv=2",
    "pp=4",
    # Data parallelism
    "dp=2",
    "dp=2,zero",
    "dp=2,overlap",
    "dp=2,tokens",
    "dp=2,clipped,untied",
    "dp=2,masked",
    f"dp=2,zero,{LLAMA}",
    "dp=4,zero,overlap",
    "dp=2,zero,overlap,gather,steps=2",
    "pp=2,dp=2,zero,overlap,gather,steps=2",
    # Context parallelism
    "cp=2",
    "cp=2,zero,untied",
    "cp=2,tokens,recompute",
    "cp=2,tokens,masked",
    f"cp=2,kv=2,{LLAMA}",
    "cp=4,rope",
    "tp=2,cp=2",
    "tp=2,cp=2,sp,qknorm,kv=2",
    f"tp=2,cp=2,sp,zero,untied,{LLAMA}",
    "cp=2,dp=2,zero,overlap",
    f"cp=2,pp=2,virtual=2,kv=2,{LLAMA}",
    f"cp=2,ep=2,{MOE},noaux",
    f"tp=2,cp=2,sp,etp=2,{MOE},noaux",
    # Experts
    f"tp=2,sp,etp=2,{MOE}",
    f"pp=2,{MOE}",
    f"pp=2,virtual=2,{MOE}",
    f"dp=2,ep=2,{MOE},noaux",
    f"dp=2,ep=2,zero,{MOE},noaux",
    f"tp=2,sp,ep=2,{MOE}",
    # Several at once
    "tp=2,dp=2",
    "tp=2,dp=2,sp,zero",
    "tp=2,pp=2",
    f"tp=2,pp=2,sp,virtual=2,kv=2,{LLAMA}",
    "pp=2,dp=2,zero",
    "pp=2,dp=2,virtual=2,overlap,untied",
    # On eight processes
    "tp=2,pp=2,dp=2",
    f"tp=2,pp=2,dp=2,sp,ep=2,{MOE},noaux",
    "tp=2,cp=2,dp=2,sp,zero",
    f"tp=2,cp=2,pp=2,sp,kv=2,untied,{LLAMA}",
)
FLOAT16 = (
    "tp=2,fp16,scale=256",
    "tp=2,sp,fp16,scale=256",
    "pp=2,fp16,scale=256",
    "dp=2,fp16,scale=256",
    "dp=2,zero,fp16,scale=256",
    f"dp=2,ep=2,{MOE},noaux,fp16,scale=256",
    # The first steps overflow, the last one does not
    "tp=2,fp16,scale=2097152,steps=4",
    # At the scale at which Megatron begins by default
    "dp=2,zero,fp16,scale=4294967296,steps=2",
)
"""Jobs in float16. Their gradients are those of a scaled loss."""
JOBS = (
    *(f"{each}{dtype}" for each in CONFIGURATIONS for dtype in ("", ",bf16")),
    *FLOAT16,
)
"""Jobs without a fault."""


def trial(text: str, steps: int = 1) -> Trial:
    """The equivalence of a job and of its model on one rank, in the same precision.

    The job may have its own number of steps.
    """
    job = Layout.parse(f"passes={PASSES},steps={steps},{text}")
    layout = of_the_job(family(job), job)
    flags = frozenset({"sequence_parallel"} if job.sp else ())
    samples = NEAR_TIES if job.experts and (job.bf16 or job.fp16) else 1
    alike = {name: getattr(job, name) for name in ("bf16", "fp16", "tokens")}
    alone = replace(job, tp=1, cp=1, pp=1, dp=1, ep=1, etp=1, virtual=1, first=0)
    whole = of_the_job(family(job), alone)
    return Trial(
        name=text,
        swept={},
        unlike={},
        reference_layout=whole,
        reference_sizes=sizes_of(whole),
        layout=layout,
        sizes=sizes_of(layout, flags=flags),
        reference=(str(TRAIN), str(replace(job.one_device, **alike))),
        candidate=(str(TRAIN), str(job)),
        steps=job.steps,
        seed=None,
        origin=None,
        kinds=KINDS,
        tolerance=Combined("*", Number(3), Noise(samples=samples)),
        samples=samples,
        perturb=None,
        localize=False,
    )


def references(folder: Path) -> Callable[[Trial], ReferenceRecordings]:
    """The reference of an equivalence, run once for each model, and once more with sketches."""
    found: dict[tuple[tuple[str, ...], bool], ReferenceRecordings] = {}

    def of(asked: Trial) -> ReferenceRecordings:
        key = asked.reference, asked.sketched
        if key not in found:
            place = Path(tempfile.mkdtemp(dir=folder))
            found[key] = run_reference(asked, place, forked)
        return found[key]

    return of


@dataclass(frozen=True, slots=True)
class Swept:
    """A job, and how it compares; None if it failed, with what it said."""

    text: str
    outcome: Outcome | None
    said: str = ""

    @property
    def silent(self) -> bool:
        """It ran, does not differ, and the layout places each of its parameters."""
        found = self.outcome
        return found is not None and not (found.wrong or found.faults or self.unplaced)

    @property
    def unplaced(self) -> tuple[str, ...]:
        """Parameters with a gradient that the layout does not place, so that it is not compared."""
        names = self.outcome.unplaced if self.outcome else ()
        return tuple(sorted({each.name for each in names if each.kind == "param_grads"}))

    @property
    def row(self) -> str:
        """In the table."""
        job, found = Layout.parse(self.text), self.outcome
        furthest = max((each.times for each in found.comparisons), default=0.0) if found else 0.0
        number = len(found.comparisons) if found else 0
        cells = (f"`{self.text}`", family(job), job.world, number, f"{furthest:.2f}", self.findings)
        return f"| {' | '.join(map(str, cells))} |"

    @property
    def findings(self) -> str:
        """How many there are, and the first in the order of the reference's run."""
        if self.outcome is None:
            return (self.said.strip().splitlines() or ["failed"])[-1]
        found = [*self.outcome.faults, *self.outcome.wrong]
        if not found and self.unplaced:
            return f"no place for {', '.join(f'`{each}`' for each in self.unplaced)}"
        if not found:
            return "; ".join(("none", *not_compared(self.outcome)))
        name = min(found, key=lambda each: each.order).name
        return f"{len(found)}, first `{name.kind} {name.name}`"


def swept(text: str, reference: Callable[[Trial], ReferenceRecordings], folder: Path) -> Swept:
    """Compare a job with its reference; `folder` is empty."""
    asked = trial(text)
    try:
        known = reference(asked)
        candidate = run_candidate(asked, known.recording, folder, start=forked)
        return Swept(text, compare(asked, known, candidate))
    except Failed as failed:
        return Swept(text, None, failed.said)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "jobs", nargs="*", default=JOBS, help="as `tp=2,sp`; all of the table without any"
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="list findings, and distances of norms, on standard error",
    )
    args = parser.parse_args()
    from tests.megatron.train import prepare  # it puts stand-ins into this process

    prepare(None)  # once, and not in each rank
    print(HEAD, flush=True)
    silent = True
    with tempfile.TemporaryDirectory() as name:
        reference = references(Path(name))
        for number, text in enumerate(args.jobs):
            folder = Path(name, str(number))
            folder.mkdir()
            found = swept(text, reference, folder)
            print(found.row, flush=True)
            silent &= found.silent
            if args.verbose:
                tell(found)
    sys.exit(not silent)


def tell(found: Swept) -> None:
    """Print what was found of a job, in the order of the reference's run, and how far norms of
    gradients are from those of the job's own gradients.
    """
    outcome = found.outcome
    if outcome is None:
        print(found.said, file=sys.stderr)
        return
    for norm in outcome.norms:
        print(f"  {norm.name}: off its gradients by {norm.off:.1e}", file=sys.stderr)
    for fault in outcome.faults:
        print(f"  {fault.name}: {fault.fault.message}", file=sys.stderr)
    for each in sorted(outcome.wrong, key=lambda each: each.order):
        print(f"  {each.name}: {each.times:.2f} times", file=sys.stderr)


if __name__ == "__main__":
    main()
