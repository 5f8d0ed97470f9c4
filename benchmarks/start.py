"""How long `tspec` takes to start, over `python -c pass`. Aim: under 0.3 s more."""

import tempfile
from pathlib import Path

from measure import PYTHON, TSPEC, Command, in_turn, median

ROUNDS = 9
SPEC = "edition 2026\n\nmodule small\n\nuse std.torch\n"


def main() -> None:
    """Print the median of each start and what it is more than Python's own."""
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
    plain = median(costs["python -c pass"])
    for name, of in costs.items():
        print(f"  {name:20} {median(of):6.3f} s  {median(of) - plain:+.3f} s")


if __name__ == "__main__":
    main()
