"""What the script of a test says after resolution: every subject, field and value looked up.

It is what a scripted trace is made of. A statement knows its place in the text, from which the
contents of tensors are made that are only said to be new.
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
class Several:
    """A list, or a set."""

    items: tuple[Said, ...]
    is_set: bool = False


@dataclass(frozen=True, slots=True)
class Entries:
    """`[entry("w", 1), entry("b", 2)]`: a map."""

    items: tuple[tuple[str, Said], ...]


@dataclass(frozen=True, slots=True)
class TensorSaid:
    """`tensor(norm: 2.0, finite: false)`: a tensor by the features that matter, the others ordinary."""

    features: tuple[tuple[str, Said], ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ClassSaid:
    """A class by its dotted paths along the method resolution order, joined by blanks."""

    paths: str


Word = Literal["absent", "changed", "gone"]


@dataclass(frozen=True, slots=True)
class Bare:
    """`absent`, `changed` (the tensor has new contents) or `gone` (the subject is no more)."""

    word: Word
    span: Span = field(compare=False, repr=False)


Said = bool | int | float | str | Named | Several | Entries | TensorSaid | ClassSaid | Bare


@dataclass(frozen=True, slots=True)
class Target:
    """What is set: a field of a subject, and what of it.

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
    """A state that is so from here on."""

    target: Target
    value: Said
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SetContext:
    """A name of the context has this value from here on."""

    name: str
    value: Said
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Mention:
    """A subject exists from here on."""

    subject: Named
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Called:
    """A call, with the fields that are said of it and what happens inside of it."""

    event: str
    said: tuple[tuple[str, Said], ...]
    inside: tuple[Statement, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class OnRanks:
    """What happens on these ranks only."""

    ranks: tuple[int, ...]
    inside: tuple[Statement, ...]


Statement = Set | SetContext | Mention | Called | OnRanks


@dataclass(frozen=True, slots=True)
class Steps:
    """What happens in each of some steps, both ends included. Step 0 lies before the first one."""

    first: int
    last: int
    inside: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """A job by hand. `axes` are the groups of each rank: axis -> for each rank its peers."""

    ranks: int
    axes: Mapping[str, tuple[tuple[int, ...], ...]]
    steps: tuple[Steps, ...]
