"""The faults of this folder, and what the rules say of a job that has one.

A fault is a module: its docstring says what it is and where it was met, `LAYOUT` is the job that it is put into,
`put_in` changes the real package before the job starts, and `FOUND` is what is to be reported first: the rule of the pack `PACK` (`megatron`, where
nothing is said), the step, the ranks that it names, and how the subject's name begins. None: every copy agrees
with the others, so that only a comparison with one device tells. `STEPS` is how many steps the job makes, if not 3.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from tests import first_found
from tests.first_found import Found
from tests.megatron.jobs import TRAIN

HERE = Path(__file__).parent
STEPS = 3
NO_FAULTS = {"bug", "table"}


@dataclass(frozen=True, slots=True)
class Bug:
    """One fault."""

    name: str
    what: str
    source: str
    layout: str
    found: Found | None
    pack: str = "megatron"
    steps: int = STEPS

    @property
    def job(self) -> str:
        """The layout with a few steps."""
        return f"{self.layout},steps={self.steps}"

    def matches(self, found: Found | None) -> bool:
        """A finding is the one that is to be."""
        return first_found.matches(found, self.found)


def load(name: str) -> Bug:
    """The fault of a module of this folder."""
    module = importlib.import_module(f"tests.megatron.bugs.{name}")
    what, _, source = (module.__doc__ or "").partition("Source: ")
    found = None if module.FOUND is None else Found(*module.FOUND)
    pack, steps = getattr(module, "PACK", "megatron"), getattr(module, "STEPS", STEPS)
    words = (" ".join(text.split()) for text in (what, source))
    return Bug(name, *words, module.LAYOUT, found, pack, steps)


def all_bugs() -> list[Bug]:
    """All faults, by name."""
    return [load(path.stem) for path in sorted(HERE.glob("*.py")) if path.stem not in NO_FAULTS]


def found_of(bug: Bug, report: Path) -> Found | None:
    """Run the job with the fault under `tspec run` with its pack; what was found first."""
    return first_found.first_found(
        [f"specs/{bug.pack}"], (TRAIN, bug.job, "--bug", bug.name), report
    )
