"""What ranks give one another comes back as it was, and nothing in it can be code."""

from __future__ import annotations

import ast
import math
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest

import tspec
from tspec.runtime.edges import Missing, Ref
from tspec.runtime.live.watch import (
    EntitySpec,
    EventSpec,
    FieldSpec,
    GroupSpec,
    WatchSpec,
    as_json,
    from_json,
)
from tspec.runtime.pending import PendingInstance
from tspec.runtime.ranks.packets import Packet
from tspec.runtime.ranks.wire import decode, encode

QUIET, NEGATIVE = (
    struct.unpack("<d", bytes.fromhex(bits))[0] for bits in ("010000000000f87f", "000000000000f8ff")
)
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        2**80,
        0.1,
        -0.0,
        5e-324,
        1.7976931348623157e308,
        math.inf,
        -math.inf,
    ),
    *(
        "",
        "a\ud800\n",
        b"\x00\xff",
        (),
        (1, (2.0, "x")),
        frozenset((1, "a")),
        {1: "one", "k": (2,)},
    ),
    *(Missing.ABSENT, Missing.NO_HISTORY, Ref("parameter", "0.weight"), "t", ("t", 1)),
)


def packet(*values: Any) -> Packet:
    """A packet with values in every place that takes any."""
    entry = PendingInstance(
        rule=2,
        rank=1,
        group=(0, 1),
        at=(3, 1),
        subjects=("0.weight", None),
        persistent=(("parameter", "0.weight"),),
        passing=True,
        leaves=values,
        index=(3, 0, 4),
        step=3,
        call=17,
        earlier=[4, 5],
        cut=True,
        no_group="no group tp",
        wanted=values,
        kinds=("parameter", "module"),
        choices=(("0.weight", None), ("",)),
    )
    return Packet(
        at=(4, 1),
        finished=False,
        entries=[entry],
        born=[("parameter", "0.weight", 3, 1)],
        windows={2: [(3, values)]},
        places={1: [(3, 0)]},
        groups={2: {(1, 17): (0, 1)}},
        off=[3],
        failed={(3, 2), (1, 0)},
        held={(3, 0)},
        closed=(3, 1),
        sync=2,
        running={2: 3},
    )


def test_a_packet_comes_back_as_it_was() -> None:
    given = packet(*VALUES)
    [found] = decode(encode([given]))
    assert found == given
    [entry] = found.entries
    assert [repr(leaf) for leaf in entry.leaves or ()] == [repr(value) for value in VALUES]
    assert decode(encode([])) == []


def test_nans_keep_their_bits() -> None:
    [found] = decode(encode([packet(QUIET, (NEGATIVE,))]))
    quiet, (negative,) = found.entries[0].leaves or ()
    assert struct.pack("<d", quiet) == struct.pack("<d", QUIET)
    assert struct.pack("<d", negative) == struct.pack("<d", NEGATIVE)


def test_what_is_no_value_is_not_recorded() -> None:
    [found] = decode(encode([packet(object())]))
    assert found.entries[0].leaves == (Missing.NOT_RECORDED,)


@pytest.mark.parametrize("text", [pickle.dumps([packet()]), b"[[1]]", b"[", b'[["x", 1]]'])
def test_bytes_that_are_no_packets_are_refused(text: bytes) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        decode(text)


def test_nothing_of_what_runs_is_unpickled() -> None:
    folder = Path(tspec.__file__).parent
    for room in ("run", "record", "runtime"):
        for path in (folder / room).rglob("*.py"):
            tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            names = {n.name for each in tree if isinstance(each, ast.Import) for n in each.names}
            assert not names & {"pickle", "marshal", "shelve"}, path


def test_what_is_watched_comes_back_as_it_was() -> None:
    import json

    fields = (
        FieldSpec("loss", ("float",), ("+", ("name", "a"), ("literal", 1.5)), True),
        FieldSpec("mode", ("optional", ("enum", "train", "eval"))),
    )
    spec = WatchSpec(
        (EventSpec("step", ("m.f",), fields, True, True), EventSpec("bare", ())),
        (EntitySpec("module", fields),),
        (GroupSpec("tp", ("m.g",)),),
        ("loss",),
    )
    found = from_json(json.loads(json.dumps(as_json(spec))))
    assert found == spec
    assert repr(found) == repr(spec)
