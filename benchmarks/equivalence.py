"""What an equivalence costs: time from start to verdict over a plain step, recording over plain, bytes stored.

The job is the tensor-parallel transformer of `tests/equivalence`, on several numbers of ranks, then deeper and wider.
"""

import re
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from measure import PYTHON, ROOT, TSPEC, Command, once

SCRIPT = ROOT / "tests/equivalence/transformer.py"
SPEC = SCRIPT.with_suffix(".tspec")
STEPS = 3
LENGTH, BATCH, HEAD = 64, 4, 16


@dataclass(frozen=True, slots=True)
class Job:
    """One size of the transformer on some ranks."""

    ranks: int
    layers: int
    hidden: int

    def script(self) -> list[str]:
        """The script with its arguments."""
        sizes = {
            "layers": self.layers,
            "hidden": self.hidden,
            "heads": self.hidden // HEAD,
            "length": LENGTH,
            "batch": BATCH,
            "steps": STEPS,
        }
        return [str(SCRIPT), *(part for k, v in sizes.items() for part in (f"--{k}", str(v)))]

    def spec(self) -> str:
        """The shipped file with this job's sizes."""
        text = SPEC.read_text().replace("run 1 step", f"run {STEPS} steps")
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
    """The median time in seconds of the steps that the script printed, without the first."""
    times = [float(each) for each in re.findall(r"^step \d+ .* ([\d.]+) s$", printed, re.M)]
    return statistics.median(times[1:])


def measured(job: Job, folder: Path) -> str:
    """A row of the table."""
    said = folder / "plain.log"
    once(Command([PYTHON, *job.script()], printed=said))
    plain = step_time(said.read_text())
    spec, kept = folder / "job.tspec", folder / "kept"
    spec.write_text(job.spec())
    named = ["--equivalence", "two_ranks_are_one", "--record", str(kept)]
    took = once(Command([*TSPEC, "run", str(spec), *named, "--", *job.script()])).wall
    recorded = step_time((kept / "reference.log").read_text())
    stored = {
        side: sum(file.stat().st_size for file in (kept / side).iterdir())
        for side in ("reference", "candidate")
    }
    elements = sum(stored.values()) / 1e6
    return (
        f"  {job.ranks:5}  {job.layers:6}  {job.hidden:6}  {plain * 1e3:8.1f} ms  {took:7.1f} s  "
        f"{took / plain:9.0f} x  {recorded / plain:6.2f} x  "
        f"{stored['reference'] / 1e6:8.1f} MB  {elements:8.1f} MB"
    )


def main() -> None:
    """Print a row for each job."""
    print(
        f"  {STEPS} steps of {BATCH} sequences of {LENGTH} tokens; two samples of the reference's noise\n"
        "  ranks  layers   width   plain step      check   over a step  recorded    reference      both"
    )
    for job in JOBS:
        with tempfile.TemporaryDirectory() as folder:
            print(measured(job, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
