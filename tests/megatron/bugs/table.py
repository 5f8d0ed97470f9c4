"""Runs the job of each fault under `specs/megatron`, and prints a table of what was reported first.

    python -m tests.megatron.bugs.table > docs/megatron_faults.md

With names, runs these alone. The status is 1 if one is not found as its module says.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.first_found import Found, in_words
from tests.megatron.bugs.bug import Bug, all_bugs, found_of, load

HEAD = """# Faults in Megatron jobs

Each row is a fault that is put into the real megatron-core 0.16.1 (`tests/megatron/bugs`), the job that it is put into, and what
`tspec run specs/megatron` reports first (`specs/moe` of routers' faults, `specs/communication` of
messages'). Printed by:

    python -m tests.megatron.bugs.table > docs/megatron_faults.md

Where no rule speaks, every copy agrees with the others: ranks are wrong together, and only a
[comparison with one device](megatron_equivalence.md) tells.

| fault | source | job | first finding |
| --- | --- | --- | --- |"""


def row(bug: Bug, found: Found | None) -> str:
    """A line of the table."""
    return f"| {bug.what} | {bug.source} | `{bug.layout}` | {in_words(found)} |"


def main() -> None:
    bugs = [load(name) for name in sys.argv[1:]] or all_bugs()
    missed = []
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        for bug in bugs:
            found = found_of(bug, Path(folder, f"{bug.name}.json"))
            print(row(bug, found), flush=True)
            if not bug.matches(found):
                missed.append(f"{bug.name}: {found} instead of {bug.found}")
    for one in missed:
        print(one, file=sys.stderr)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
