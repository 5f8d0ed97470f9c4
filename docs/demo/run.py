"""What `make demo` runs: two training scripts, their silent bugs, and what tspec says of each.

Every command is printed as a user would type it, and what it wrote to standard output follows
(to standard error it also warns while the job runs). Nothing is taken from an earlier run. The exit
status is 1 if a bug is missed or a sound run is accused.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from shown import WIDTH, typed

ROOT = Path(__file__).resolve().parents[2]
RUNS = Path("runs/demo")
PACK = "specs/essentials"
SHIPPED = "shipped"
DRAFT = "draft"


@dataclass(frozen=True, slots=True)
class Bug:
    """One mistake: its name in the script, what it is, and what else the script has to be told."""

    name: str
    about: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """One script of the demo."""

    title: str
    script: str
    good: tuple[tuple[str, ...], ...]
    clean: tuple[str, ...]
    bugs: tuple[Bug, ...]
    drafts_must_catch: int

    @property
    def name(self) -> str:
        return Path(self.script).stem

    @property
    def drafts(self) -> Path:
        return RUNS / f"{self.name}.tspec"


@dataclass(frozen=True, slots=True)
class Finding:
    """One violated rule, with those folded under it laid out beside it."""

    rule: str
    origin: str
    step: int
    subject: str


@dataclass(frozen=True, slots=True)
class Caught:
    """What was found in one buggy run."""

    bug: Bug
    findings: tuple[Finding, ...]

    def by(self, origin: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.origin == origin]


DIGITS = Job(
    title="A CNN on scikit-learn's digits",
    script="docs/demo/digits.py",
    good=(("--seed", "0"), ("--seed", "1", "--ranks", "2")),
    clean=("--seed", "7"),
    bugs=(
        Bug("no-zero-grad", "the gradients are not cleared"),
        Bug("stale-optimizer", "the optimizer is built before the last layer is replaced"),
        Bug("eval-dropout", "dropout goes on in evaluation"),
        Bug("double-schedule", "the learning-rate schedule is stepped twice"),
        Bug("no-autocast", "autocast does not reach the last layer"),
        Bug("unsynced", "two ranks: one parameter is not synchronised", ("--ranks", "2")),
    ),
    drafts_must_catch=4,
)

GPT = Job(
    title="A character GPT on the pages of Python's own reference",
    script="docs/demo/chargpt.py",
    good=(("--steps", "40"), ("--steps", "40", "--seed", "1", "--ranks", "2")),
    clean=("--steps", "40", "--seed", "7"),
    bugs=(
        Bug("no-zero-grad", "the gradients are not cleared", ("--steps", "30")),
        Bug(
            "stale-optimizer",
            "the optimizer is built before the embeddings are resized",
            ("--steps", "30"),
        ),
        Bug("eval-dropout", "attention drops out in evaluation", ("--steps", "30")),
        Bug("double-schedule", "the schedule counts micro-batches", ("--steps", "30")),
        Bug("no-autocast", "autocast does not reach a layer of each block", ("--steps", "30")),
        Bug(
            "unsynced",
            "two ranks: only matrices are averaged",
            ("--steps", "30", "--ranks", "2"),
        ),
    ),
    drafts_must_catch=4,
)


class Terminal:
    """Starts commands, a few at a time, and shows them in the order in which they were asked for."""

    def __init__(self, at_once: int) -> None:
        self._pool = ThreadPoolExecutor(at_once)

    def start(self, command: list[str]) -> Future[subprocess.CompletedProcess[str]]:
        return self._pool.submit(_run, command)

    def show(
        self, command: list[str], lines: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        return self.print(command, self.start(command), lines)

    def print(
        self,
        command: list[str],
        done: Future[subprocess.CompletedProcess[str]],
        lines: int | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """The command as typed, then what it printed; with `lines`, no more than that many."""
        print(f"\n$ {typed(command)}", flush=True)
        result = done.result()
        output = [part for line in result.stdout.splitlines() for part in _folded(line)]
        shown = output if lines is None else output[:lines]
        print("\n".join(shown))
        if len(shown) < len(output):
            print(f"[{len(output) - len(shown)} more lines]")
        return result


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run as in a terminal of 80 columns, from the project's folder."""
    beside = str(Path(sys.executable).parent)
    environment = os.environ | {
        "COLUMNS": str(WIDTH),
        "OMP_NUM_THREADS": "1",
        "PATH": beside + os.pathsep + os.environ.get("PATH", ""),
    }
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


def _folded(line: str) -> list[str]:
    """A line in the width of the page, broken between words."""
    return textwrap.wrap(line, WIDTH, drop_whitespace=False, break_on_hyphens=False) or [""]


def report_file(job: Job, run: str) -> Path:
    return RUNS / f"{job.name}-{run}.json"


def record_and_draft(terminal: Terminal, job: Job) -> None:
    """Two good runs, recorded; the rules that they have in common; hooks that check them."""
    say("Record two good runs, and draft rules from them.")
    folders = [str(RUNS / f"{job.name}-{number}") for number in range(1, len(job.good) + 1)]
    commands = [
        ["tspec", "record", "-o", folder, "--", job.script, *options]
        for folder, options in zip(folders, job.good, strict=True)
    ]
    started = [terminal.start(command) for command in commands]
    for command, done in zip(commands, started, strict=True):
        must(terminal.print(command, done))
    must(terminal.show(["tspec", "infer", *folders, "-o", str(job.drafts)]))
    must(terminal.show(["head", "-n", "42", str(job.drafts)]))

    say("Compile the drafts and the rules that ship into hooks that a person can read.")
    hooks = str(RUNS / f"{job.name}_hooks.py")
    must(terminal.show(["tspec", "compile", str(job.drafts), PACK, "-o", hooks]))
    must(terminal.show(["wc", "-l", hooks]))


def run_with_rules(job: Job, run: str, options: tuple[str, ...]) -> list[str]:
    """The command that runs the script with the drafts and the shipped rules switched on."""
    report = str(report_file(job, run))
    rules = [str(job.drafts), PACK]
    return ["tspec", "run", *rules, "--report", report, "--", job.script, *options]


def catch_bugs(terminal: Terminal, job: Job) -> tuple[list[Caught], bool]:
    """A sound run with another seed, then each bug: what was found, and whether silence held."""
    clean = run_with_rules(job, "clean", job.clean)
    commands = [run_with_rules(job, b.name, (*b.options, "--bug", b.name)) for b in job.bugs]
    started = [terminal.start(command) for command in (clean, *commands)]

    say("A sound run with another seed. No rule is violated.")
    ended = terminal.print(clean, started[0], 12)
    silent = ended.returncode == 0 and not list(read_findings(job, report_file(job, "clean")))

    caught = []
    for bug, command, done in zip(job.bugs, commands, started[1:], strict=True):
        say(f"The same script, but {bug.about}.")
        terminal.print(command, done, 26)
        found = Caught(bug, tuple(read_findings(job, report_file(job, bug.name))))
        caught.append(found)
        print(wording(found))
    return caught, silent


def read_findings(job: Job, report: Path) -> Iterable[Finding]:
    """All rules of a report, consequences included, in the report's order."""
    path = ROOT / report
    if not path.exists():
        return
    waiting = list(json.loads(path.read_text()))
    while waiting:
        one = waiting.pop(0)
        is_draft = Path(one["file"]).name == job.drafts.name
        yield Finding(
            one["rule"], DRAFT if is_draft else SHIPPED, one["step"] or 0, one["subject"] or ""
        )
        waiting[:0] = one.get("consequences") or []


def wording(caught: Caught) -> str:
    """One line: how many rules of each origin saw the bug, and the first step at which."""
    if not caught.findings:
        return "==> MISSED"
    parts = []
    for origin in (DRAFT, SHIPPED):
        found = caught.by(origin)
        if found:
            first = min(finding.step for finding in found)
            plural = "" if len(found) == 1 else "s"
            parts.append(f"{len(found)} {origin} rule{plural} (first: step {first})")
    return "==> caught by " + " and ".join(parts)


def summary(job: Job, caught: list[Caught], silent: bool) -> bool:
    """The table at the end; whether all is as it should be."""
    print(f"\n{job.title}\n")
    print(f"  {'bug':<16} {'step':>4}  {'drafts':>6}  {'shipped':>7}  the first rule")
    for found in caught:
        if found.findings:
            step = min(finding.step for finding in found.findings)
            rule = found.findings[0].rule.rsplit(".", 1)[-1]
        else:
            step, rule = 0, "MISSED"
        drafts, shipped = len(found.by(DRAFT)), len(found.by(SHIPPED))
        line = f"  {found.bug.name:<16} {step:>4}  {drafts:>6}  {shipped:>7}  {rule}"
        print(line if len(line) <= WIDTH else line[: WIDTH - 1] + "…")
    by_drafts = sum(bool(found.by(DRAFT)) for found in caught)
    missed = [found.bug.name for found in caught if not found.findings]
    print(
        f"\n  {len(caught) - len(missed)} of {len(caught)} bugs caught; the drafts catch {by_drafts};"
        f" {'no finding in the sound run' if silent else 'FINDINGS IN THE SOUND RUN'}."
    )
    return silent and not missed and by_drafts >= job.drafts_must_catch


def say(text: str) -> None:
    print(f"\n{'─' * WIDTH}\n{text}", flush=True)


def must(result: subprocess.CompletedProcess[str]) -> None:
    """Without this command there is nothing to show."""
    if result.returncode != 0:
        print(result.stderr, file=sys.stderr)
        sys.exit(f"the demo stops: `{typed(result.args)}` ended with {result.returncode}")


def main() -> None:
    """Both jobs, or those that are named on the command line."""
    started = time.monotonic()
    chosen = [job for job in (DIGITS, GPT) if not sys.argv[1:] or job.name in sys.argv[1:]]
    shutil.rmtree(ROOT / RUNS, ignore_errors=True)
    (ROOT / RUNS).mkdir(parents=True)
    terminal = Terminal(at_once=os.cpu_count() or 1)
    outcomes = []
    for job in chosen:
        print(f"\n{'━' * WIDTH}\n{job.title}: {job.script}")
        record_and_draft(terminal, job)
        outcomes.append((job, *catch_bugs(terminal, job)))
    print(f"\n{'━' * WIDTH}")
    good = [summary(*outcome) for outcome in outcomes]
    print(f"\n{time.monotonic() - started:.0f} seconds. Recordings and hooks are in {RUNS}/.")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
