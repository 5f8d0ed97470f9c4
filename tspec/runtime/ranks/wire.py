"""Packets as bytes: JSON, from which only plain values are made.

Packets store sequences of a known kind as JSON arrays. Among values that rules read, a string,
bool, number or null stands for itself, and an array has a kind (`"t"` for a tuple) and its content.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from tspec.runtime.edges import Missing, Ref
from tspec.runtime.pending import PendingInstance
from tspec.runtime.ranks.packets import Packet
from tspec.runtime.tensors import TensorSample
from tspec.values import Datum

Json: TypeAlias = Any
"""What JSON holds: a string, number, bool, None or a list of these. Its form shows where it is read."""
ITSELF = frozenset((str, int, bool, type(None)))


def encode(packets: Iterable[Packet]) -> bytes:
    """Packets as bytes."""
    return json.dumps([_packet(one) for one in packets], separators=(",", ":")).encode("ascii")


def decode(text: bytes) -> list[Packet]:
    """The packets that were encoded. Raises ValueError, TypeError or KeyError if the bytes are no packets."""
    return [_packet_of(one) for one in json.loads(text)]


# Packets


def _packet(packet: Packet) -> list[Json]:
    return [
        packet.at,
        packet.finished,
        [_entry(entry) for entry in packet.entries],
        packet.born,
        [
            (rule, [(step, _values(found)) for step, found in windows])
            for rule, windows in packet.windows.items()
        ],
        [(rule, list(places)) for rule, places in packet.places.items()],
        [(rule, list(groups.items())) for rule, groups in packet.groups.items()],
        packet.off,
        sorted(packet.failed),
        sorted(packet.held),
        packet.closed,
        packet.sync,
        packet.joined,
        list(packet.running.items()),
    ]


def _packet_of(found: Sequence[Json]) -> Packet:
    at, finished, entries, born, windows, places, groups, *rest = found
    off, failed, held, closed, sync, joined, running = rest
    return Packet(
        at=tuple(at),
        finished=finished,
        entries=[_entry_of(one) for one in entries],
        born=[(kind, name, step, epoch) for kind, name, step, epoch in born],
        windows={rule: [(s, _values_of(v)) for s, v in kept] for rule, kept in windows},
        places={rule: [(unit, place) for unit, place in kept] for rule, kept in places},
        groups={rule: {(r, c): tuple(g) for (r, c), g in kept} for rule, kept in groups},
        off=off,
        failed={(step, rule) for step, rule in failed},
        held={(step, rule) for step, rule in held},
        closed=tuple(closed),
        sync=sync,
        joined=joined,
        running=dict(running),
    )


def _entry(entry: PendingInstance) -> list[Json]:
    leaves = entry.leaves
    return [
        entry.rule,
        entry.rank,
        entry.group,
        entry.at,
        entry.subjects,
        entry.persistent,
        entry.passing,
        None if leaves is None else _values(leaves),
        entry.index,
        entry.step,
        entry.call,
        list(entry.earlier),
        entry.cut,
        entry.no_group,
        _values(entry.wanted),
        entry.kinds,
        entry.choices,
    ]


def _entry_of(found: Sequence[Json]) -> PendingInstance:
    rule, rank, group, at, subjects, persistent, passing, leaves, *rest = found
    index, step, call, earlier, cut, no_group, wanted, kinds, choices = rest
    return PendingInstance(
        rule,
        rank,
        tuple(group),
        tuple(at),
        tuple(subjects),
        tuple([(kind, name) for kind, name in persistent]),
        passing,
        None if leaves is None else _values_of(leaves),
        tuple(index),
        step,
        call,
        earlier,
        cut,
        no_group,
        _values_of(wanted),
        kinds=tuple(kinds),
        choices=tuple([tuple(names) for names in choices]),
    )


# Values


def _values(values: Iterable[Datum]) -> list[Json]:
    return [value if value.__class__ in ITSELF else _value(value) for value in values]


def _values_of(values: Iterable[Datum]) -> tuple[Datum, ...]:
    return tuple([value if value.__class__ is not list else _value_of(value) for value in values])


def _value(value: Datum) -> Json:
    """A value for JSON. A value that the language lacks is not recorded."""
    if value.__class__ is float:
        # NaNs have different bits, and JSON keeps none of them.
        return value if value == value else ["f", struct.pack("<d", value).hex()]
    if value.__class__ in ITSELF:
        return value
    if value.__class__ is Missing:
        return ["m", value.name]
    if value.__class__ is Ref:
        return ["r", value.kind, value.name]
    if value.__class__ is TensorSample:
        return ["s", *_pairs(value.features.items())]
    if isinstance(value, (tuple, list)):
        return ["t", *_values(value)]
    if isinstance(value, (frozenset, set)):
        return ["u", *_values(value)]
    if isinstance(value, Mapping):
        return ["d", *_pairs(value.items())]
    for plain in (bool, int, float, str):
        if isinstance(value, plain):
            return _value(plain(value))
    if isinstance(value, (bytes, bytearray)):
        return ["b", bytes(value).hex()]
    return ["m", Missing.NOT_RECORDED.name]


def _pairs(pairs: Iterable[tuple[Datum, Datum]]) -> Iterable[list[Json]]:
    return map(_values, pairs)


def _value_of(value: Json) -> Datum:
    if value.__class__ is not list:
        return value
    return _READ[value[0]](value[1:])


def _mapping(pairs: Sequence[Json]) -> dict[Json, Datum]:
    found = {}
    for pair in pairs:
        key, value = _values_of(pair)
        found[key] = value
    return found


_READ: Mapping[Json, Callable[[Json], Datum]] = {
    "t": _values_of,
    "u": lambda content: frozenset(_values_of(content)),
    "d": _mapping,
    "s": lambda content: TensorSample(_mapping(content)),
    "m": lambda content: Missing[content[0]],
    "r": lambda content: Ref(content[0], content[1]),
    "f": lambda content: struct.unpack("<d", bytes.fromhex(content[0]))[0],
    "b": lambda content: bytes.fromhex(content[0]),
}
