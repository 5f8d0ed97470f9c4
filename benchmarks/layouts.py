"""How long the proofs for the shipped Megatron layouts take. Aim: under 10 s in total."""

import time
from dataclasses import replace

from measure import ROOT, TSPEC, Command, in_turn, median

from tspec.layout.faults import faults
from tspec.resolve import load

LAYOUTS = ROOT / "specs" / "megatron" / "layouts"
ROUNDS = 3


def main() -> None:
    """Print the time of each layout's proofs, and of the command that proves them all."""
    program = load([LAYOUTS]).program
    assert program is not None
    for layout in program.layouts:
        alone = replace(program, layouts=(layout,))
        began = time.perf_counter()
        found = faults(alone)
        took = time.perf_counter() - began
        print(
            f"  {layout.name}: {len(layout.placements)} places, {len(found)} faults: {took:.2f} s"
        )
    commands = {"check": Command([*TSPEC, "layout", "check", str(LAYOUTS)])}
    print(f"  tspec layout check, all: {median(in_turn(commands, ROUNDS)['check']):.2f} s")


if __name__ == "__main__":
    main()
