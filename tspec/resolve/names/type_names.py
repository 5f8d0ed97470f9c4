"""Resolves written types, and gives the values of each type's words."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

from tspec.diagnostics import did_you_mean
from tspec.resolve.findings import Findings
from tspec.resolve.program import types
from tspec.resolve.program.types import is_number, item_of, plain
from tspec.source import Source
from tspec.syntax import nodes

DTYPES = frozenset(
    [
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex32",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn_x2",
        "qint8",
        "quint8",
        "qint32",
    ]
)
DEVICES = frozenset(["cpu", "cuda", "mps", "xpu", "meta", "hpu", "xla"])
MEMORY_FORMAT = types.Enum(
    ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
)

_SIMPLE = frozenset(name for name in get_args(types.Simple) if name != "difference")
_GENERIC = {"list": 1, "set": 1, "map": 2}


def resolve_type(
    node: nodes.Type, entities: Collection[str], source: Source, findings: Findings
) -> types.Type | None:
    """The type that a written type names. None if there is none, which is reported."""
    if isinstance(node, nodes.Choice):
        names = tuple(word.text for word in node.names)
        if len(set(names)) < len(names):
            findings.add("TS0111", "an enumeration names a value twice", (source, node.span))
        return types.Enum(tuple(dict.fromkeys(names)))
    if not isinstance(node, nodes.NamedType):
        return None
    name = node.name.text
    expected = _GENERIC.get(name, 0)
    if name not in _GENERIC and name not in _SIMPLE and name not in entities:
        known = {*_GENERIC, *_SIMPLE, *entities}
        message = f"there is no type `{name}`"
        findings.add("TS0110", message, (source, node.name.span), hint=did_you_mean(name, known))
        return None
    if len(node.arguments) != expected:
        example = {1: f"{name}<int>", 2: f"{name}<string, int>", 0: name}[expected]
        message = f"`{name}` takes {expected} types in angle brackets, not {len(node.arguments)}"
        findings.add("TS0111", message, (source, node.span), hint=f"write `{example}`")
        return None
    arguments = [resolve_type(each, entities, source, findings) for each in node.arguments]
    known_arguments = [each for each in arguments if each is not None]
    if len(known_arguments) < len(arguments):
        return None
    found = _build(name, known_arguments)
    return types.Optional(found) if node.optional else found


def _build(name: str, arguments: list[types.Type]) -> types.Type:
    if name == "list":
        return types.ListOf(arguments[0])
    if name == "set":
        return types.SetOf(arguments[0])
    if name == "map":
        return types.MapOf(arguments[0], arguments[1])
    for simple in get_args(types.Simple):
        if name == simple:
            return types.Scalar(simple)
    return types.Entity(name)


def words_of(of: types.Type | None) -> frozenset[str]:
    """The bare words that are values of a type."""
    if of is None:
        return frozenset()
    of = plain(of)
    if isinstance(of, types.Enum):
        return frozenset(of.members)
    if of == types.DTYPE:
        return DTYPES
    return DEVICES if of == types.DEVICE else frozenset()


def comparable(left: types.Type, right: types.Type) -> bool:
    """True if two values of these types can ever be equal."""
    left, right = plain(left), plain(right)
    if left == right:
        return True
    if is_number(left) and is_number(right):
        return True
    simple = (types.BOOL, types.INT, types.FLOAT, types.STRING, types.SCALAR)
    if types.SCALAR in (left, right):
        return left in simple and right in simple
    items = item_of(left), item_of(right)
    same_kind = isinstance(left, types.SetOf) == isinstance(right, types.SetOf)
    if items[0] is not None and items[1] is not None and same_kind:
        return comparable(items[0], items[1])
    if isinstance(left, types.MapOf) and isinstance(right, types.MapOf):
        return comparable(left.key, right.key) and comparable(left.value, right.value)
    return False
