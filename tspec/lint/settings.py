"""A project's choices about lint: the codes, and the cost from which a rule is expensive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of lint.

    `select` and `ignore` hold codes or beginnings of them (`TS04`, `TS0402`); an empty `select` is
    all. `ignored_in` maps patterns of paths to codes. `passes` is how often a rule may read every
    parameter of a model in one step, `collectives` how many it may need in one step, on average.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    ignored_in: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    passes: float = 12.0
    collectives: float = 1.0

    def selects(self, code: str) -> bool:
        """True if a code is selected."""
        wanted = not self.select or any(code.startswith(each) for each in self.select)
        return wanted and not any(code.startswith(each) for each in self.ignore)

    def ignores(self, code: str, path: str) -> bool:
        """True if a code is ignored in one file."""
        shown = Path(path).as_posix()
        return any(
            code.startswith(each)
            for pattern, codes in self.ignored_in.items()
            if fnmatch(shown, pattern) or fnmatch(shown, f"*/{pattern}")
            for each in codes
        )


DEFAULT = Settings()
