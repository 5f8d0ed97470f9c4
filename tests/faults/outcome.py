"""What came of inputs that were damaged on purpose: counts by outcome, and each input that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Progress = Callable[[int], None]
"""Is given the number of inputs that were tried so far."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One input that was not handled as it should be."""

    name: str
    """Unique among the failures of one fuzzer; from seed and number, so that it can be made again."""
    problem: str
    files: Mapping[str, bytes]
    """The input, by path."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many inputs came to which outcome, and those that failed."""

    counts: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()

    @property
    def tried(self) -> int:
        """The number of inputs."""
        return sum(self.counts.values()) + len(self.failures)

    def __add__(self, other: Outcome) -> Outcome:
        counts = Counter(self.counts) + Counter(other.counts)
        return Outcome(dict(counts), (*self.failures, *other.failures))


def save(failures: tuple[Failure, ...], folder: Path) -> None:
    """Write each failing input into a folder of its own, with what went wrong in `problem.txt`."""
    for failure in failures:
        into = folder / failure.name
        for name, content in {"problem.txt": failure.problem.encode(), **failure.files}.items():
            file = into / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
