"""How long the review of 1,000 rules takes: comparing with an edited copy, formatting, lint. Aim: under 5 s each."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

from measure import TSPEC, Command, in_turn, median

RULES = 1_000
EDITED = 50
ROUNDS = 3

HEADER = "edition 2026\n\nmodule project.many\n\nuse std.torch\n"
BODIES = (
    """  each step
  when step > {a} and phase == train
  expect loss < {b}
  else warn
""",
    """  for p in parameters(requires_grad: true)
  after backward
  when present(p.grad) and step > {a}
  expect finite(p.grad) and norm(p.grad) < {b}
  else skip
""",
    """  for p in parameters
  across dp
  each step every {a} steps
  expect same(p.data) and norm(p.data) < {b}
  else stop
""",
    """  for p in parameters
  during optimizer.step
  when old(norm(p.data)) > {a}
  expect changed(p.data) or p.dtype in [bfloat16, float16]
  else warn after {b} consecutive steps
""",
    """  each step
  when step > {b}
  expect loss <= {a} * max(previous(loss), over: 20 steps) or loss < {a}
  else warn
""",
    """  for m in modules
  for p in m.parameters
  before optimizer.step
  when p.requires_grad and m.training and not m.root
  expect present(p.grad) or endswith(p.name, "bias") or step < {a}
  else warn after {b} consecutive steps
""",
)  # fmt: skip


def rules(edited: frozenset[int]) -> str:
    """A thousand rules of six kinds, in canonical form; some with another number in a condition."""
    found = [HEADER]
    for number in range(RULES):
        first = 2 + number % 7 + (3 if number in edited else 0)
        body = BODIES[number % len(BODIES)].format(a=first, b=10 + number)
        found.append(f"\ninvariant rule_{number} {{\n{body}}}\n")
    return "".join(found)


def write(folder: Path) -> tuple[Path, Path]:
    """The rules before and after somebody edited some of their conditions."""
    edited = frozenset(Random(0).sample(range(RULES), EDITED))
    paths = folder / "before.tspec", folder / "after.tspec"
    paths[0].write_text(rules(frozenset()), encoding="utf-8")
    paths[1].write_text(rules(edited), encoding="utf-8")
    return paths


def diff(before: Path, after: Path) -> Command:
    """`tspec diff`; some changes loosen, which is status 1."""
    return Command([*TSPEC, "diff", str(before), str(after)], statuses=(0, 1))


def fmt(before: Path, after: Path) -> Command:
    """`tspec fmt --check`."""
    return Command([*TSPEC, "fmt", "--check", str(before)])


def lint(before: Path, after: Path) -> Command:
    """`tspec lint`; there are findings, which is status 1."""
    return Command([*TSPEC, "lint", str(before)], statuses=(0, 1))


COMMANDS: dict[str, Callable[[Path, Path], Command]] = {"diff": diff, "fmt": fmt, "lint": lint}
"""What a review runs: a function of the rules before and after for each."""


def main() -> None:
    """Print the median of each."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder))
        commands = {name: make(*paths) for name, make in COMMANDS.items()}
        for name, cost in in_turn(commands, ROUNDS).items():
            what = f" against a copy with {EDITED} edits" if name == "diff" else ""
            print(f"  tspec {name}, {RULES} rules{what}: {median(cost):.2f} s")


if __name__ == "__main__":
    main()
