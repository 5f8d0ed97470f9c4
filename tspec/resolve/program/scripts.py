"""The script of a test after resolution: every subject, field and value is looked up.

A scripted trace is made from it. A statement has its span, because the digest of a tensor that is
`changed` is made from where the script says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tspec.source import Span


@dataclass(frozen=True, slots=True)
class Named:
    """`parameter("head.weight")`: a subject by its kind and canonical name."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class ListValue:
    """A list, or a set."""

    items: tuple[ScriptValue, ...]
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class MapValue:
    """`[entry("w", 1), entry("b", 2)]`: a map."""

    items: tuple[tuple[str, ScriptValue], ...]


@dataclass(frozen=True, slots=True)
class TensorValue:
    """`tensor(norm: 2.0, finite: false)`: a tensor by some of its features; the others have default values."""

    features: tuple[tuple[str, ScriptValue], ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ClassValue:
    """A class by its dotted paths along the method resolution order, joined by blanks."""

    paths: str


Word = Literal["absent", "changed", "gone"]


@dataclass(frozen=True, slots=True)
class Keyword:
    """`absent`, `changed` (the tensor has new contents) or `gone` (the subject is no more)."""

    word: Word
    span: Span = field(compare=False, repr=False)


ScriptValue = (
    bool | int | float | str | Named | ListValue | MapValue | TensorValue | ClassValue | Keyword
)


@dataclass(frozen=True, slots=True)
class Target:
    """The target of an assignment: a field of a subject, or a part of it.

    `path` leads from the subject over fields: `("group", "lr")` is the `lr` of the subject that is
    the `group`; `feature` is one of a tensor, `key` an entry of a map. Without a path it is the
    subject itself.
    """

    subject: Named
    path: tuple[str, ...] = ()
    feature: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Set:
    """A field has this value from here on."""

    target: Target
    value: ScriptValue
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SetContext:
    """A name of the context has this value from here on."""

    name: str
    value: ScriptValue
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Mention:
    """A subject exists from here on."""

    subject: Named
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CallStatement:
    """A call: its fields in the script, and the events inside of it."""

    event: str
    said: tuple[tuple[str, ScriptValue], ...]
    inside: tuple[Statement, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OnRanks:
    """Events on these ranks only."""

    ranks: tuple[int, ...]
    inside: tuple[Statement, ...]


Statement = Set | SetContext | Mention | CallStatement | OnRanks


@dataclass(frozen=True, slots=True)
class Steps:
    """Events in each of some steps, both ends included. Step 0 precedes the first step."""

    first: int
    last: int
    inside: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A scripted job. `axes`: for each axis the peers of each rank."""

    ranks: int
    axes: Mapping[str, tuple[tuple[int, ...], ...]]
    steps: tuple[Steps, ...]
