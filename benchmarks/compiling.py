"""How long it takes to compile the shipped packs, which are over 100 rules. Aim: 100 rules under 2 s."""

import itertools
import tempfile
import time
from pathlib import Path

from measure import ROOT, TSPEC, Command, in_turn

from tspec.logic import simplify_program
from tspec.resolve import load
from tspec.targets.compile import compile_program

PACKS = ROOT / "specs"
ROUNDS = 3


def main() -> None:
    """Print the times of the command and of its parts."""
    with tempfile.TemporaryDirectory() as name:
        hooks = Path(name) / "hooks.py"
        command = Command([*TSPEC, "compile", str(PACKS), "-o", str(hooks)])
        costs = in_turn({"compile": command}, ROUNDS)["compile"]
        lines = hooks.read_text().count("\n")
    marks = [time.process_time()]
    loaded = load([PACKS])
    marks.append(time.process_time())
    if loaded.program is None:
        raise SystemExit(f"{PACKS} has errors")
    simpler, _ = simplify_program(loaded.program, {})
    marks.append(time.process_time())
    compile_program(simpler)
    marks.append(time.process_time())
    read, simplify, write = (after - before for before, after in itertools.pairwise(marks))
    wall, cpu = min(cost.wall for cost in costs), min(cost.cpu for cost in costs)
    print(f"  {len(loaded.program.rules)} rules, {lines:,} lines of Python")
    print(f"  the command {wall:.2f} s ({cpu:.2f} s of CPU)")
    print(f"  of which reading {read:.2f} s, simplifying {simplify:.2f} s, writing {write:.2f} s")


if __name__ == "__main__":
    main()
