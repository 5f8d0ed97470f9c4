"""Nodes of `mesh`, `dims` and `layout`: which shard of each tensor each rank holds."""

from __future__ import annotations

from dataclasses import dataclass

from tspec.syntax.declarations import Clause, Declaration, Entry, When
from tspec.syntax.expressions import Node, String, Word


@dataclass(frozen=True, slots=True)
class Regroup(Node):
    """`regroup experts { order: ..., ep: 4 }`: a second factorisation of the same ranks."""

    name: Word
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Mesh(Declaration):
    """`mesh name { order: tp, dp  tp: 2 ... }`."""

    name: Word
    entries: tuple[Entry, ...]
    regroups: tuple[Regroup, ...] = ()


@dataclass(frozen=True, slots=True)
class Dims(Declaration):
    """`dims name { hidden: 1024 ... }`: sizes by name, each an expression over the others."""

    name: Word
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Split(Node):
    """`/ axis` or `/ order(axis)`: the dimension is cut over the ranks of an axis."""

    axis: Word
    order: Word | None = None


@dataclass(frozen=True, slots=True)
class SizeName(Node):
    """A dimension's size by name."""

    text: str


@dataclass(frozen=True, slots=True)
class SizeNumber(Node):
    """A dimension's size as a number."""

    value: int


@dataclass(frozen=True, slots=True)
class SizeSum(Node):
    """`q_per_group + 2`, `(q / tp) + (kv / tp) + (kv / tp)`: consecutive sections, each cut for itself. Two or more."""

    terms: tuple[SizeName | SizeNumber | Product, ...]


@dataclass(frozen=True, slots=True)
class Product(Node):
    """`(groups / tp, q_per_group + 2, head)`: one dimension made of several, the last fastest."""

    dimensions: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class Dimension(Node):
    """One dimension: its size, its padding, and the axes over which it is cut.

    `padding` holds the factors of `padded to 128 * tp`; empty without padding.
    """

    size: SizeName | SizeNumber | SizeSum | Product
    padding: tuple[SizeName | SizeNumber, ...] = ()
    splits: tuple[Split, ...] = ()


@dataclass(frozen=True, slots=True)
class Shape(Node):
    """`[vocab / tp, hidden]`."""

    dimensions: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class Flat(Node):
    """`flat padded to dp / dp`: flattened, then cut, as optimizers' shards are."""

    splits: tuple[Split, ...]
    padding: tuple[SizeName | SizeNumber, ...] = ()


@dataclass(frozen=True, slots=True)
class Place(Clause):
    """`param "name.*": [sizes] partial tp replicated cp when condition`.

    `kind` is one of `param`, `grad`, `state`, `input`, `input_grad`, `output`,
    `output_grad`, `buffer`. `partial`: the axes over which the ranks' tensors have to be added up.
    `replicated`: the axes over which the ranks hold the same tensor.
    """

    kind: Word
    pattern: String
    shape: Shape | Flat
    partial: tuple[Word, ...] = ()
    replicated: tuple[Word, ...] = ()
    when: When | None = None


@dataclass(frozen=True, slots=True)
class Tied(Clause):
    """`tied "a" == "b"`: one tensor under two names."""

    left: String
    right: String


@dataclass(frozen=True, slots=True)
class Stage(Clause):
    """`stage 0: "embedding", "layers.0..5"` or, interleaved, `stage 0 chunk 1: ...`."""

    number: int
    modules: tuple[String, ...]
    chunk: int | None = None


@dataclass(frozen=True, slots=True)
class Layout(Declaration):
    """`layout name on mesh replicated dp { places, ties, stages }`.

    `replicated`: the axes over which ranks hold the same tensor wherever a place does not cut or
    add up.
    """

    name: Word
    mesh: Word
    clauses: tuple[Place | Tied | Stage, ...]
    replicated: tuple[Word, ...] = ()
