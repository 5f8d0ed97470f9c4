"""TrainCheck 0.2.0 and tspec on the same script in the same run: trace size, and time to record, infer and check.

TrainCheck is installed without its dependencies, plus those that it needs, into `.bench/traincheck`.
"""

import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from measure import PYTHON, ROOT, TSPEC, Command, Cost, in_turn, once

HOME = ROOT / ".bench"
ENVIRONMENT = HOME / "traincheck"
WORK = HOME / "work"
SCRIPT = WORK / "digits.py"
"""A copy: TrainCheck leaves its rewritten script beside the script."""
ROUNDS = 3
PARTS = [
    "astor",
    "numba",
    "orjson",
    "watchdog",
    "pandas",
    "polars",
    "pyyaml",
    "tqdm",
    "numpy",
    "scikit-learn",
]


def install() -> Path:
    """TrainCheck's folder of commands; made on the first call."""
    commands = ENVIRONMENT / "bin"
    if not (commands / "traincheck-collect").exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        pip = [str(commands / "python"), "-m", "pip", "install", "--quiet"]
        pins = ["-c", str(ROOT / "constraints.txt")]
        subprocess.run([*pip, *pins, "torch==2.13.0"], check=True)
        subprocess.run([*pip, *pins, *PARTS], check=True)
        subprocess.run([*pip, "--no-deps", "traincheck==0.2.0"], check=True)
    return commands


def fresh(folder: Path) -> None:
    """Remove what an earlier round left."""
    shutil.rmtree(folder, ignore_errors=True)


def recorders(traincheck: Path) -> Mapping[str, Command]:
    """The plain script, and what records it."""
    theirs, ours = WORK / "traincheck", WORK / "tspec"
    collect = [str(traincheck / "traincheck-collect"), "--pyscript", str(SCRIPT)]
    collect += ["--models-to-track", "model", "--output-dir", str(theirs)]
    return {
        "plain": Command([PYTHON, str(SCRIPT)]),
        "traincheck": Command(collect, lambda: fresh(theirs), folder=WORK),
        "tspec": Command(
            [*TSPEC, "record", "-o", str(ours), "--", str(SCRIPT)], before=lambda: fresh(ours)
        ),
    }


def size(folder: Path, *patterns: str) -> float:
    """Megabytes of the files in a folder that fit a pattern."""
    return sum(f.stat().st_size for pattern in patterns for f in folder.glob(pattern)) / 1e6


def row(name: str, theirs: float, ours: float, unit: str) -> None:
    """Print one line of the comparison."""
    print(f"  {name:22} {theirs:9.2f} {unit:2} {ours:9.2f} {unit:2} {theirs / ours:8.1f} x")


def cpu(costs: list[Cost]) -> float:
    """The median CPU time."""
    return statistics.median(cost.cpu for cost in costs)


def main() -> None:
    """Print what each of the two takes, and the ratio."""
    traincheck = install()
    WORK.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "benchmarks/jobs/digits.py", SCRIPT)
    recorded = in_turn(recorders(traincheck), ROUNDS)
    theirs, ours = WORK / "traincheck", WORK / "tspec"
    invariants, drafts = WORK / "invariants.json", WORK / "drafts.tspec"
    infer = {
        "traincheck": Command(
            [str(traincheck / "traincheck-infer"), "-f", str(theirs), "-o", str(invariants)],
            folder=WORK,
        ),
        "tspec": Command([*TSPEC, "infer", str(ours), "-o", str(drafts)]),
    }
    inferred = {name: once(command) for name, command in infer.items()}
    result = WORK / "traincheck-check"
    check = [str(traincheck / "traincheck-check"), "-f", str(theirs), "-i", str(invariants)]
    check += ["-o", str(result)]
    checked = {
        "traincheck": once(Command(check, lambda: fresh(result), folder=WORK)),
        "tspec": once(
            Command([*TSPEC, "check", str(drafts), "--trace", str(ours)], statuses=(0, 1))
        ),
    }
    plain = cpu(recorded["plain"])
    print(f"  {'CPU time':22} {'TrainCheck':>12} {'tspec':>12}   TrainCheck / tspec")
    trace = (size(theirs, "trace_*", "proxy_log.json"), size(ours, "**/*"))
    row("trace", *trace, "MB")
    row("record", cpu(recorded["traincheck"]), cpu(recorded["tspec"]), "s")
    row("record / plain run", *(cpu(recorded[n]) / plain for n in ("traincheck", "tspec")), "x")
    row("infer", inferred["traincheck"].cpu, inferred["tspec"].cpu, "s")
    row("check", checked["traincheck"].cpu, checked["tspec"].cpu, "s")
    rules = invariants.read_text().count("\n"), drafts.read_text().count("draft invariant")
    print(f"  {'rules':22} {rules[0]:>9}    {rules[1]:>9}")


if __name__ == "__main__":
    main()
