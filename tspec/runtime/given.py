"""The values that rules were compiled for, compared with those of the job that they run in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tspec.runtime.edges import StateSource


@dataclass(frozen=True, slots=True)
class CompiledFor:
    """The values of `--given` that rules were compiled for."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    """Axis -> its number of ranks."""
    values: Mapping[str, bool | int | str] = field(default_factory=dict)
    """Context value -> its constant value in the job."""

    def misfits(self, source: StateSource) -> Iterator[str]:
        """A sentence for each value that the job contradicts. A context value that is not known, or
        that each instant has anew, such as the step, is not compared.
        """
        groups = source.groups()
        for axis, size in self.sizes.items():
            ranks = groups.get(axis)
            if ranks is None and size != 1:
                yield _said(axis, size, f"no axis {axis} is known of this job", 1)
            elif ranks is not None and len(ranks) != size:
                yield _said(axis, size, f"this job has {axis}={len(ranks)}", len(ranks))
        for name, value in self.values.items():
            if source.context.value(name) is not None:
                continue
            found = source.ambient(name)
            if isinstance(found, (bool, int, str)) and found != value:
                yield _said(name, _word(value), f"this job has {name}={_word(found)}", _word(found))


def _word(value: bool | int | str) -> str:
    """A value as `--given` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _said(name: str, given: int | str, job: str, found: int | str) -> str:
    return (
        f"the rules were compiled for {name}={given}, and {job}: what {name}={given} decides"
        f" is not checked; compile them with --given {name}={found}, or without {name}"
    )
