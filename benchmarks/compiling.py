"""How long it takes to compile 100 rules to hooks: the whole command, and compiling alone. Aim: under 2 s."""

import tempfile
import time
from pathlib import Path

from measure import TSPEC, Command, in_turn

from tspec.resolve import load
from tspec.targets.compile import compile_program

RULES = 100
ROUNDS = 3

HEAD = "edition 2026\n\nmodule many\n\nuse std.torch\n\n"

KINDS = (
    "  for p in parameters\n  before optimizer.step\n  when present(p.grad) and step > {n}\n"
    "  expect norm(p.grad) <= {n}.5 * norm(p.data)\n",
    "  for p in parameters\n  across world\n  after optimizer.step\n  when step > {n}\n"
    "  expect same(p.data)\n",
    "  each step\n  when step > {n}\n  expect count(calls(optimizer.zero_grad)) <= {n} + 1\n",
    "  for c in calls(forward)\n  when c.module.root and step > {n}\n  expect max(c.output) < {n}.25\n",
    "  each step\n  when step > {n}\n  expect loss <= {n} * mean(previous(loss), over: 10 steps)\n",
)


def rules() -> str:
    """A hundred rules of five kinds, no two alike."""
    return HEAD + "\n".join(
        f"invariant rule_{n} {{\n{KINDS[n % len(KINDS)].format(n=n)}  else warn\n}}\n"
        for n in range(1, RULES + 1)
    )


def main() -> None:
    """Print the times of the command and of its two parts."""
    with tempfile.TemporaryDirectory() as name:
        spec, hooks = Path(name) / "many.tspec", Path(name) / "hooks.py"
        spec.write_text(rules())
        command = Command([*TSPEC, "compile", str(spec), "-o", str(hooks)])
        costs = in_turn({"compile": command}, ROUNDS)["compile"]
        best = min(cost.wall for cost in costs)
        lines = hooks.read_text().count("\n")
        began = time.perf_counter()
        loaded = load([spec])
        read = time.perf_counter()
        assert loaded.program is not None
        compile_program(loaded.program)
        done = time.perf_counter()
    print(f"  {RULES} rules, {lines:,} lines of Python: {best:.2f} s for the command")
    print(f"  of which reading {read - began:.2f} s, compiling {done - read:.2f} s")


if __name__ == "__main__":
    main()
