"""What an equivalence costs, with full tensors and with sketches: time from start to verdict, recording over plain, bytes stored, and the error of estimates.

The job is the tensor-parallel transformer of `tests/equivalence`, on several numbers of ranks, then deeper and wider.
A plain step and a recorded one are those of the same ranks, started by torchrun. Arguments choose rows, from 1 on.
"""

import re
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

from measure import PYTHON, ROOT, TSPEC, Command, once

from tspec.equivalence.recording import read
from tspec.equivalence.sketch import NUMBERS

SCRIPT = ROOT / "tests/equivalence/transformer.py"
SPEC = SCRIPT.with_suffix(".tspec")
STEPS = 3
PLAIN = 12
"""Steps of the plain job."""
LENGTH, BATCH, HEAD = 64, 4, 16


@dataclass(frozen=True, slots=True)
class Job:
    """One size of the transformer on some ranks."""

    ranks: int
    layers: int
    hidden: int

    def plain(self) -> list[str]:
        """The command that starts the job without tspec."""
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.ranks}"]
        return [PYTHON, *(launcher if self.ranks > 1 else ()), *self.script(PLAIN)]

    def script(self, steps: int = STEPS) -> list[str]:
        """The script with its arguments."""
        sizes = {
            "layers": self.layers,
            "hidden": self.hidden,
            "heads": self.hidden // HEAD,
            "length": LENGTH,
            "batch": BATCH,
            "steps": steps,
        }
        return [str(SCRIPT), *(part for k, v in sizes.items() for part in (f"--{k}", str(v)))]

    def spec(self, sketched: bool) -> str:
        """The shipped file with this job's sizes, without a second run of the candidate."""
        text = SPEC.read_text().replace("run 1 step", f"run {STEPS} steps")
        text = text.replace("localize by rewriting inputs", "store: sketch" * sketched)
        sizes = {
            "tp": self.ranks,
            "heads": self.hidden // HEAD,
            "head": HEAD,
            "hidden": self.hidden,
            "ffn": 4 * self.hidden,
        }
        for name, size in sizes.items():
            text = re.sub(rf"^  {name}: \d+$", f"  {name}: {size}", text, flags=re.M)
        return text.replace("candidate { tp: 2 }", f"candidate {{ tp: {self.ranks} }}")


JOBS = [
    Job(1, 2, 128),
    Job(2, 2, 128),
    Job(4, 2, 128),
    Job(8, 2, 128),
    Job(2, 8, 128),
    Job(2, 2, 512),
    Job(2, 8, 512),
]


def step_time(printed: str) -> float:
    """The time in seconds of the fastest step that the script printed, without the first."""
    times = [float(each) for each in re.findall(r"^step \d+ .* ([\d.]+) s$", printed, re.M)]
    return min(times[1:])


def measured(job: Job, folder: Path) -> Iterator[str]:
    """Two rows of the table."""
    said = folder / "plain.log"
    once(Command(job.plain(), printed=said))
    plain = step_time(said.read_text())
    for stores in ("tensors", "sketches"):
        spec, kept = folder / f"{stores}.tspec", folder / stores
        spec.write_text(job.spec(stores == "sketches"))
        named = ["--equivalence", "two_ranks_are_one", "--record", str(kept)]
        took = once(Command([*TSPEC, "run", str(spec), *named, "--", *job.script()])).wall
        recorded = step_time((kept / "candidate.log").read_text())
        reference, candidate = (
            sum(file.stat().st_size for file in (kept / side).iterdir()) / 1e6
            for side in ("reference", "candidate")
        )
        yield (
            f"  {job.ranks:5}  {job.layers:6}  {job.hidden:5}  {stores:8}  {took:7.1f} s  "
            f"{took / plain:7.0f} x  {recorded / plain:7.2f} x  {reference:6.2f} MB  {candidate:6.2f} MB"
        )
    errors = list(errors_of_estimates(folder / "tensors", folder / "sketches"))
    largest = max(map(abs, errors))
    yield (
        f"         {len(errors)} norms: standard error {statistics.pstdev(errors, 0):.1%}, largest {largest:.1%}"
    )


def errors_of_estimates(tensors: Path, sketches: Path) -> Iterator[float]:
    """Relative errors of norms: of the reference's tensors, and of their change under perturbed inputs."""
    exact, estimated = (
        [read(folder / side, 0) for side in ("reference", "sample-1")]
        for folder in (tensors, sketches)
    )
    for name, of in estimated[0].sketched.items():
        if prod(of.shape) > NUMBERS and name in exact[0].tensors:
            before, after, one, other = (
                each.tensors[name].double() for each in (*exact, *estimated)
            )
            for right, found in ((before, one), (after - before, other - one)):
                norm = float(right.norm())
                if norm:
                    yield float(found.norm()) / norm - 1


def main() -> None:
    """Print rows for each job."""
    print(
        f"  {STEPS} steps of {BATCH} sequences of {LENGTH} tokens; two samples of the reference's noise\n"
        "  ranks  layers  width  stores        check  over a step  recorded  reference  candidate"
    )
    for job in [JOBS[int(each) - 1] for each in sys.argv[1:]] or JOBS:
        with tempfile.TemporaryDirectory() as folder:
            for row in measured(job, Path(folder)):
                print(row, flush=True)


if __name__ == "__main__":
    main()
