"""Whether the program says in which mode its dropout is, where it calls it."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tspec.runtime.live import EventSpec, FieldSpec, LiveJob, WatchSpec

MODE = FieldSpec(
    "mode_is_given",
    ("optional", ("bool",)),
    ("call", "mode_is_given", (("name", "training"),), ()),
)
SPEC = WatchSpec((EventSpec("dropout", ("torch.nn.functional.dropout",), (MODE,)),))
X = torch.ones(4)


class Modes:
    """Keeps what was read of each call; what could not be is kept as None."""

    def __init__(self):
        self.found = []

    def begin(self, call, source):
        given = call.fields["mode_is_given"]
        self.found.append(given if isinstance(given, bool) else None)

    def end(self, call, source): ...
    def advance(self, windows, source): ...
    def finish(self, source): ...


class Own(nn.Module):
    def __init__(self, drop):
        super().__init__()
        self.drop = drop

    def forward(self, x):
        return self.drop(x)


def modes(calls):
    seen = Modes()
    with LiveJob(SPEC, [seen]), torch.no_grad():
        calls()
    return seen.found


WRITTEN = {
    "positions": (lambda: F.dropout(X, 0.1, True), True),
    "keyword": (lambda: F.dropout(X, training=True), True),
    "lines": (
        lambda: F.dropout(
            X,
            p=0.1,
            training=True,
        ),
        True,
    ),
    "layer": (lambda: nn.Dropout(0.1)(X), True),
    "default": (lambda: F.dropout(X, 0.1), False),
    "default by name": (lambda: F.dropout(X, p=0.1, inplace=False), False),
    "default in letters of several bytes": (lambda: ("ä", F.dropout(X, 0.1)), False),
    "default of a path": (lambda: torch.nn.functional.dropout(X), False),
    "default within a call": (lambda: torch.relu(F.dropout(X)), False),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_source_says_whether_the_mode_is_given(name):
    calls, expected = WRITTEN[name]
    assert modes(calls) == [expected]


UNKNOWN = {
    "several arguments at once": lambda: F.dropout(*(X, 0.1, True)),
    "names at once": lambda: F.dropout(X, **{"training": True}),
    "a partial function": Own(partial(F.dropout, training=True)).forward,
    "code without a file": lambda: exec("F.dropout(X)", {"F": F, "X": X}),
    "nothing is dropped": lambda: F.dropout(X, 0.1, False),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_calls_say_nothing(name):
    calls = UNKNOWN[name]
    assert modes(partial(calls, X) if name == "a partial function" else calls) == [None]


def test_calls_with_a_graph_are_not_looked_at():
    def calls():
        with torch.enable_grad():
            F.dropout(X, 0.1)

    assert modes(calls) == [None]


def test_each_call_of_a_line_is_read_and_remembered():
    def calls():
        for _ in range(2):
            F.dropout(F.dropout(X, 0.1), 0.1, True)

    assert modes(calls) == [False, True, False, True]
