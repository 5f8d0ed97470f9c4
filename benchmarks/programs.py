"""A training program of other hands, plain and under `tspec run specs/essentials`: what is found, and what it costs.

    benchmarks/programs.py CLONE SCRIPT [ARGUMENTS...]

CLONE is a clone of a public repository, SCRIPT a path in it; it runs in its own folder, with the arguments as they
are. Printed is a row of the table in `docs/programs.md`: the program, the clone's revision, the rules that were
violated, how many rules and instances were decided, and the CPU time of the run with rules over that of the plain run. Whole
processes are timed, so that a short run counts the start of tspec too. Programs bring no data: give them yours.
"""

import argparse
import json
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

from measure import PYTHON, ROOT, TSPEC, Command, in_turn, once

PACK = ROOT / "specs/essentials"


def revision(clone: Path) -> str:
    """The commit of a clone, in short."""
    asked = ["git", "-C", str(clone), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def rules_of(report: Path) -> list[str]:
    """The rules of a report that were violated, most first; those that follow from others are left out."""
    found = [each["rule"].rpartition(".")[2] for each in json.loads(report.read_text())]
    return sorted(set(found), key=lambda rule: (-found.count(rule), rule))


def decided_of(printed: str) -> str:
    """How many rules and instances a run decided. Raises RuntimeError if it does not say, or if tspec itself failed in it."""
    said = re.search(
        r"([\d,]+) rules: ([\d,]+) violated, ([\d,]+) held\. .* ([\d,]+) decided", printed
    )
    if said is None or "internal error" in printed:
        raise RuntimeError(f"no instances are counted, or tspec failed, in:\n{printed[-2000:]}")
    rules = int(said[2]) + int(said[3])
    return f"{rules} of {said[1]} rules, {said[4]} instances"


def main() -> None:
    """Print the row of one program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1, help="how often each way runs, in turn")
    parser.add_argument("clone", type=Path)
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    script = (args.clone / args.script).resolve()
    line = [str(script), *args.arguments]
    with tempfile.TemporaryDirectory() as folder:
        report, printed = Path(folder) / "report.json", Path(folder) / "printed"
        watched = [*TSPEC, "run", "--no-config", str(PACK), "--report", str(report), "--", *line]
        costs = in_turn(
            {
                "plain": Command([PYTHON, *line], folder=script.parent),
                "run": Command(watched, folder=script.parent, statuses=(0, 1), printed=printed),
            },
            args.rounds,
            once,
        )
        found, decided = rules_of(report), decided_of(printed.read_text())
    ratio = statistics.median(
        run.cpu / plain.cpu for run, plain in zip(costs["run"], costs["plain"], strict=True)
    )
    plain = statistics.median(cost.cpu for cost in costs["plain"])
    program = f"{args.clone.resolve().name}/{args.script}"
    said = ", ".join(f"`{rule}`" for rule in found) or "silent"
    print(
        f"| {program} | {revision(args.clone)} | {said} | {decided} | {plain:.1f} s | {ratio:.2f} |"
    )


if __name__ == "__main__":
    main()
