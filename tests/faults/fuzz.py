"""The long run: `python -m tests.faults.fuzz [--minutes M] [--scale F] [--seed N] [--only NAME] [--out DIR]`.

Each fuzzer is a module of this folder with `run(count, seed)`. Its inputs are tried in chunks, each in a
process of its own, as many at once as there are cores; a process that dies or hangs is a failure.
Exit status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pickle
import subprocess
import sys
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from tests.faults.outcome import Failure, Outcome, save
from tests.faults.processes import ROOT, environment

HANGS = 900.0
"""Seconds after which a chunk counts as hanging; on an idle core it takes under a minute."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How many inputs of one fuzzer a whole run tries, and how many are tried in one process."""

    name: str
    count: int
    chunk: int


PLANS = (
    Plan("specs", 100_000, 500),
    Plan("traces", 2_000, 100),
    Plan("crafted", 400, 20),
    Plan("configurations", 20_000, 1_000),
    Plan("baselines", 10_000, 500),
    Plan("kills", 60, 3),
    Plan("disks", 20, 2),
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Inputs that are tried in one process."""

    name: str
    count: int
    seed: int


def chunks(plans: tuple[Plan, ...], scale: float, seed: int) -> list[Chunk]:
    """All chunks, those of the fuzzers mixed, so that a run that is cut short has tried some of each."""
    placed = []
    for plan in plans:
        left, number = max(1, round(plan.count * scale)), 0
        sizes = [plan.chunk] * (left // plan.chunk) + [left % plan.chunk] * bool(left % plan.chunk)
        for number, size in enumerate(sizes):
            chunk = Chunk(plan.name, size, seed * 1000 + number)
            placed.append(((number + 0.5) / len(sizes), chunk))
    return [chunk for _, chunk in sorted(placed, key=lambda each: each[0])]


def run_chunk(chunk: Chunk) -> Outcome:
    """Try the inputs of one chunk in a process of its own."""
    with tempfile.TemporaryDirectory() as made:
        answer = Path(made) / "outcome"
        told = [chunk.name, str(chunk.count), str(chunk.seed), str(answer)]
        command = [sys.executable, "-m", "tests.faults.fuzz", "--chunk", *told]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment(),
                capture_output=True,
                timeout=HANGS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"no end after {HANGS:.0f} seconds"
        else:
            if done.returncode == 0:
                outcome = pickle.loads(answer.read_bytes())
                assert isinstance(outcome, Outcome)
                return outcome
            problem = (
                f"the process ended with {done.returncode}\n{done.stderr.decode(errors='replace')}"
            )
        return Outcome(failures=(Failure(f"{chunk.name}-{chunk.seed}", problem, {}),))


def run_all(planned: list[Chunk], seconds: float, workers: int, folder: Path) -> dict[str, Outcome]:
    """Run chunks until they or the time are over; what is under way then is finished.

    Inputs that fail are written to the folder as soon as they are found.
    """
    outcomes: dict[str, Outcome] = {}
    started = time.monotonic()
    waiting, done = iter(planned), 0
    with ThreadPoolExecutor(workers) as pool:
        under_way: dict[Future[Outcome], Chunk] = {}
        while True:
            while len(under_way) < workers and time.monotonic() - started < seconds:
                chunk = next(waiting, None)
                if chunk is None:
                    break
                under_way[pool.submit(run_chunk, chunk)] = chunk
            if not under_way:
                return outcomes
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                chunk = under_way.pop(future)
                outcome = future.result()
                outcomes[chunk.name] = outcomes.get(chunk.name, Outcome()) + outcome
                save(outcome.failures, folder)
                done += 1
            failed = sum(len(outcome.failures) for outcome in outcomes.values())
            say = f"{time.monotonic() - started:5.0f} s  {done} of {len(planned)} chunks, {failed} failed"
            print(f"{say}  ({chunk.name})", file=sys.stderr, flush=True)


def table(outcomes: dict[str, Outcome], planned: list[Chunk]) -> str:
    """What was tried, how much of that was planned, and what came of it: a line for each outcome."""
    rows = []
    for name in sorted({chunk.name for chunk in planned}):
        outcome = outcomes.get(name, Outcome())
        wanted = sum(chunk.count for chunk in planned if chunk.name == name)
        short = "" if outcome.tried == wanted else f" of {wanted:,}, then the time was over"
        rows.append((name, f"{outcome.tried:,}", f"tried{short}"))
        rows += [("", f"{n:,}", what) for what, n in sorted(outcome.counts.items())]
        rows.append(("", f"{len(outcome.failures):,}", "failed"))
    wide, right = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{name:{wide}}  {number:>{right}}  {what}" for name, number, what in rows)


def main(arguments: list[str]) -> int:
    """The command."""
    if arguments[:1] == ["--chunk"]:
        name, count, seed, answer = arguments[1:]
        outcome = importlib.import_module(f"tests.faults.{name}").run(int(count), int(seed))
        Path(answer).write_bytes(pickle.dumps(outcome))
        return 0
    parser = argparse.ArgumentParser(description="Try damaged inputs on every part of tspec.")
    parser.add_argument("--minutes", type=float, default=30.0, help="when to stop (30)")
    parser.add_argument("--scale", type=float, help="of all counts (minutes / 30)")
    parser.add_argument(
        "--seed", type=int, default=0, help="the same seed tries the same inputs (0)"
    )
    parser.add_argument("--only", action="append", help="one fuzzer; may be given again")
    parser.add_argument("--out", type=Path, default=Path("fuzz-failures"), help="for what fails")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    asked = parser.parse_args(arguments)
    plans = tuple(plan for plan in PLANS if not asked.only or plan.name in asked.only)
    if not plans:
        parser.error(f"there are {', '.join(plan.name for plan in PLANS)}")
    scale = asked.minutes / 30 if asked.scale is None else asked.scale
    started = time.monotonic()
    planned = chunks(plans, scale, asked.seed)
    folder = asked.out / f"seed-{asked.seed}"
    outcomes = run_all(planned, asked.minutes * 60, asked.jobs, folder)
    print(table(outcomes, planned))
    failures = tuple(failure for outcome in outcomes.values() for failure in outcome.failures)
    took = (time.monotonic() - started) / 60
    print(f"\nseed {asked.seed}, {took:.1f} minutes, {len(failures)} failed")
    if failures:
        print(f"the failing inputs are in {folder}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
