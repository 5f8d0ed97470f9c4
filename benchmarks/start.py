"""How long `tspec` takes to start, over `python -c pass`. Aim: under 0.3 s more."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import PYTHON, TSPEC, Command, Cost, in_turn

ROUNDS = 9
SPEC = "edition 2026\n\nmodule small\n\nuse std.torch\n"


def main() -> None:
    """Print the least time of each start and what it is more than Python's own."""
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "small.tspec"
        spec.write_text(SPEC)
        costs = in_turn(
            {
                "python -c pass": Command([PYTHON, "-c", "pass"]),
                "tspec --help": Command([*TSPEC, "--help"]),
                "tspec fmt --check": Command([*TSPEC, "fmt", "--check", str(spec)]),
            },
            ROUNDS,
        )
    plain = costs["python -c pass"]
    for name, of in costs.items():
        wall, cpu = (least(of, what) - least(plain, what) for what in ("wall", "cpu"))
        print(f"  {name:20} {least(of, 'wall'):6.3f} s: {wall:+.3f} s, {cpu:+.3f} s of CPU")


def least(costs: Sequence[Cost], what: str) -> float:
    """The least wall or CPU time: the one that other work on the machine lengthened least."""
    return min(getattr(cost, what) for cost in costs)


if __name__ == "__main__":
    main()
