"""The interface of every kind of subject: its subjects by canonical name, and their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tspec.runtime.edges import Missing
from tspec.values import Datum


class SubjectKind(Protocol):
    """One kind of subject of a live job."""

    def things(self) -> Mapping[str, Any]:
        """Canonical name and object of all subjects, the oldest first."""

    def name_of(self, thing: Any) -> str | None:
        """The canonical name of an object; None if it is not a subject of this kind."""

    def field(self, name: str, subject: str, thing: Any) -> Datum:
        """A field's value, tensors as handles; UNKNOWN if the kind has no such field of its own."""


class ColumnReader(Protocol):
    """A kind with hundreds of subjects, which reads a frequent field of all of them at once."""

    def column(self, name: str, things: Mapping[str, Any]) -> dict[str, Datum] | None:
        """A field of several subjects at once; None if it has to be read from each subject separately."""


def asked(thing: Any, name: str) -> Any:
    """An attribute of a user's object; None if the object has no such attribute or raises."""
    try:
        return getattr(thing, name, None)
    except Exception:  # a property or `__getattr__` of the user's may raise anything
        return None


class UnknownField:
    """Marks a field that the kind does not define, so it is read as an attribute of the object."""


UNKNOWN = UnknownField()
ABSENT = Missing.ABSENT
NOT_RECORDED = Missing.NOT_RECORDED
