"""The columns that rules want of an instant, and what is kept from one to another: samples, structure of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tspec.runtime.edges import Ref
from tspec.values import Datum


class Want(NamedTuple):
    """A column that rules read: a field of every subject of a kind, and the features of its tensors."""

    kind: str
    field: str
    features: tuple[str, ...] = ()


class SampleHistory(Protocol):
    """Earlier samples, kept for a source that forgets."""

    def born(self, kind: str) -> Mapping[str, int]:
        """The sequence number at which each passing subject was created, by name."""

    def column(self, kind: str, name: str) -> Mapping[str, Datum] | None:
        """The column of a passing kind as it was then; None for other kinds."""

    def first(self, kind: str, name: str) -> Mapping[str, Datum]:
        """A field as it was when each subject was first seen."""


@dataclass(slots=True)
class Structure:
    """The structure of models as read in one step or several, each part with the subjects that there were then."""

    columns: dict[tuple[str, str], tuple[tuple[str, ...], Mapping[str, Datum]]] = field(
        default_factory=dict
    )
    """Kind and field -> the column."""
    refs: dict[str, tuple[tuple[str, ...], tuple[Ref, ...]]] = field(default_factory=dict)
    """Kind -> its subjects as values."""
    chosen: dict[tuple[str, str], tuple[tuple[str, ...], tuple[str, ...]]] = field(
        default_factory=dict
    )
    """Kind and filters as text -> the subjects that the filters choose."""
