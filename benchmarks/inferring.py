"""What `tspec infer` takes from two recordings of the digits CNN, of about one megabyte each. Aim: under 5 s."""

import tempfile
from pathlib import Path

from measure import DIGITS, TSPEC, Command, once

SIZE = ("--samples", "1280", "--epochs", "2")
ROUNDS = 3


def size(folder: Path) -> float:
    """Megabytes of a recording."""
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


def main() -> None:
    """Record twice, infer from both some times, and print each time with the CPU time."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / name for name in ("a", "b")]
        for seed, run in enumerate(runs):
            script = [str(DIGITS), "--seed", str(seed), *SIZE]
            once(Command([*TSPEC, "record", "-o", str(run), "--", *script]))
        print("  recordings: " + ", ".join(f"{size(run):.1f} MB" for run in runs))
        drafts = Path(folder) / "drafts.tspec"
        for _ in range(ROUNDS):
            cost = once(Command([*TSPEC, "infer", *map(str, runs), "-o", str(drafts)]))
            written = drafts.read_text().count("draft invariant")
            print(f"  {written} drafts in {cost.wall:.1f} s, {cost.cpu:.1f} s of CPU")


if __name__ == "__main__":
    main()
