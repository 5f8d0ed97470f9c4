"""Proofs that pieces tile: what is proved is so for numbers, and what is refuted is not."""

from __future__ import annotations

from collections import Counter

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from tspec.layout.shards import UnevenShards, indices
from tspec.layout.sizes import Sizes
from tspec.logic import tiling as room
from tspec.logic.coverage import covered
from tspec.logic.tiling import tiling
from tspec.resolve import load_text
from tspec.resolve.program.sharding import Dimension, Product, Split, Sum

ZIGZAG = Split("cp", "zigzag")
PROVED = (
    Dimension("hidden"),
    Dimension("hidden", (), (Split("tp"),)),
    Dimension("seq", (), (ZIGZAG, Split("tp"))),
    Dimension("vocab", (128, "tp"), (Split("tp"),)),
    Dimension("vocab", (128, "tp", "cp"), (ZIGZAG, Split("tp"))),
    Dimension(
        Product((Dimension("g", (), (Split("tp"),)), Dimension(Sum(("q", 2))), Dimension("head")))
    ),
    Dimension(Product((Dimension(2), Dimension("ffn", (), (Split("tp"), Split("cp")))))),
    Dimension(
        Sum(
            tuple(
                Product((Dimension(heads, (), (Split("tp"),)), Dimension("head")))
                for heads in ("q", "g", "g")
            )
        )
    ),
    Dimension(Product((Dimension("a"), Dimension("b"))), (), (Split("tp"),)),
    Dimension(Product((Dimension("vocab", ("tp",), (Split("tp"),)), Dimension("head")))),
)
REFUTED = (
    Dimension("vocab", (128,), (Split("tp"),)),
    Dimension("vocab", (3, "cp"), (ZIGZAG,)),
    Dimension("vocab", (8, "tp"), (Split("cp"),)),
    Dimension("vocab", (2, "tp"), (Split("tp"), Split("cp"))),
    Dimension(Product((Dimension("vocab", (4,), (Split("tp"),)), Dimension("head")))),
)
NAMES = ("hidden", "seq", "vocab", "g", "q", "head", "ffn", "a", "b")


@pytest.mark.parametrize("dimension", PROVED, ids=str)
def test_what_tiles_is_proved(dimension: Dimension) -> None:
    assert tiling(dimension).answer == "yes"


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PROVED), st.data())
def test_what_is_proved_is_so_for_numbers(dimension: Dimension, data: st.DataObject) -> None:
    axes = {name: data.draw(st.integers(1, 3), name) for name in ("tp", "cp")}
    numbers = {name: data.draw(st.integers(1, 12), name) for name in NAMES}
    held: Counter[int] = Counter()
    for tp in range(axes["tp"]):
        for cp in range(axes["cp"]):
            try:
                mine = indices(dimension, {"tp": tp, "cp": cp}, Sizes(numbers, axes))
            except UnevenShards:
                assert not dimension.padding
                return
            held.update(mine.held)
    size = indices(dimension, {"tp": 0, "cp": 0}, Sizes(numbers, axes)).real
    assert sorted(held) == list(range(size))
    assert len(set(held.values())) == 1


@pytest.mark.parametrize("dimension", REFUTED, ids=str)
def test_what_is_refuted_does_not_come_out_even(dimension: Dimension) -> None:
    found = tiling(dimension)
    assert found.answer == "no"
    assert all(value <= 8 for name, value in found.sizes.items() if name in ("tp", "cp"))
    with pytest.raises(UnevenShards):
        sizes = {name: found.sizes.get(name, 1) for name in NAMES}
        axes = {name: found.sizes.get(name, 1) for name in ("tp", "cp")}
        indices(dimension, {"tp": 0, "cp": 0}, Sizes(sizes, axes))


@given(st.sampled_from([Split("tp"), Split("tp", "zigzag")]), st.integers(1, 4), st.integers(1, 4))
def test_z3_and_index_sets_mean_the_same_by_a_cut(split: Split, ranks: int, length: int) -> None:
    size = length * ranks * (2 if split.order == "zigzag" else 1)
    for rank in range(ranks):
        sizes = Sizes({}, {"tp": ranks})
        mine = indices(Dimension(size, (), (split,)), {"tp": rank}, sizes)
        told = {
            index
            for index in range(size)
            if z3.is_true(
                z3.simplify(
                    room._holder(split, *map(z3.IntVal, (ranks, length, index)))(z3.IntVal(rank))
                )
            )
        }
        assert told == mine.held


@pytest.mark.parametrize("shift", [1, -1])
def test_a_wrong_order_is_not_proved(shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    right = room._holder

    def wrong(split, ranks, length, index):
        return right(split, ranks, length, index + shift)

    monkeypatch.setattr(room, "_holder", wrong)
    for split in (Split("tp"), ZIGZAG):
        assert tiling(Dimension("seq", (), (split,))).answer != "yes"


HEAD = "edition 2026\n\nmesh m {\n  order: tp\n  tp: 2\n}\n\nlayout m on m {\n"


def conditions(*texts: str):
    places = "".join(f'  param "a{i}": [] when {text}\n' for i, text in enumerate(texts))
    loaded = load_text(HEAD + places + "}\n")
    assert loaded.program is not None
    return [place.when for place in loaded.program.layouts[0].placements]


@pytest.mark.parametrize(
    ("texts", "witness"),
    [
        (("x", "not x"), None),
        (("tp > 1", "tp == 1"), None),
        (("x implies y", "x"), None),
        (("x",), {"x": "false"}),
        (("tp > 1 and x", "not x"), {"tp": "1", "x": "true"}),
        (("tp > 1",), {"tp": "1"}),
    ],
    ids=str,
)
def test_conditions_that_leave_no_case_out(texts: tuple[str, ...], witness) -> None:
    answer = covered(conditions(*texts))
    assert (answer.answer, dict(answer.witness)) == ("no" if witness else "yes", witness or {})
