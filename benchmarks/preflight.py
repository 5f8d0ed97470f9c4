"""What a dry run of a model of eight billion parameters under `fully_shard` takes, for one rank of 1,024."""

import tempfile
from pathlib import Path

from measure import ROOT, TSPEC, Command, once

JOBS = ROOT / "benchmarks" / "jobs"
RANK = 1000


def main() -> None:
    """Print what the dry run says, and what it takes."""
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder, "printed")
        asked = ["--layout", "sharded", "--rank", str(RANK), "--", str(JOBS / "llama.py")]
        arguments = [*TSPEC, "preflight", str(JOBS / "llama.tspec"), *asked]
        cost = once(Command(arguments, printed=printed))
        for line in printed.read_text().splitlines():
            print(f"  {line}")
    print(f"  {cost.cpu:.0f} s of one core")


if __name__ == "__main__":
    main()
