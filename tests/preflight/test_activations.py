"""Inputs and outputs of modules against a layout that leaves the sizes of the input open."""

from __future__ import annotations

from typing import Literal

import pytest

from tspec.layout.sizes import sizes_of
from tspec.preflight.check import problems
from tspec.preflight.facts import Activation, Placed, RankFacts, TensorFacts
from tspec.resolve import load_text

TEXT = """edition 2026

module example

mesh ranks {
  order: tp, dp, pp
  tp: 2
  dp: 2
  pp: 2
}

dims ranks {
  hidden: 8
}

layout cut on ranks replicated dp {
  input "Net": [seq / tp, batch / dp, hidden]
  output "a": [seq, batch / dp, hidden] replicated tp
  output "b": [seq, batch / dp, hidden] partial tp
  output "c": [(batch / dp, seq), hidden / tp]
  stage 0: "a", "b", "c"
  stage 1: "Net"
}
"""


def found(*activations: Activation, rank: int = 0, **given: int) -> list[str]:
    program = load_text(TEXT).program
    assert program is not None, load_text(TEXT).diagnostics
    [layout] = program.layouts
    axes = (("tp", 2), ("dp", 2), ("pp", 2))
    facts = RankFacts(rank, 8, False, axes, (), (), (), (), activations, {})
    return [
        f"{each.name}: {each.what}" for each in problems(layout, sizes_of(layout, given), [facts])
    ]


def output(name: str, *shape: int) -> Activation:
    return Activation("output", TensorFacts(name, shape, shape, 0))


def test_a_size_that_is_off_by_numbers_of_ranks_is_a_cut_too_many_or_too_few() -> None:
    assert found(output("a", 16, 3, 8), output("b", 16, 3, 8)) == []
    assert found(output("a", 16, 3, 8), output("b", 8, 3, 8)) == [
        "output b: it has shape [8, 3, 8], and [16, 3, 8] of [16, 6, 8] in the layout"
    ]
    assert found(output("a", 16, 3, 8), output("b", 16, 6, 8)) == [
        "output b: it has shape [16, 6, 8], and [16, 3, 8] of [16, 6, 8] in the layout"
    ]


def test_any_other_size_is_one_of_its_own() -> None:
    assert found(output("a", 15, 3, 8), output("b", 1, 3, 8)) == []


def test_sizes_that_are_given_have_to_be_there() -> None:
    assert found(output("a", 15, 3, 8), seq=15, batch=6) == []
    assert found(output("a", 15, 3, 8), seq=16) == [
        "output a: it has shape [15, 3, 8], and [16, 3, 8] of [16, 6, 8] in the layout"
    ]


@pytest.mark.parametrize("shape", [(16, 8), (16, 3, 4), (16, 3, 8, 1)])
def test_other_sizes_and_other_dimensions_are_wrong(shape: tuple[int, ...]) -> None:
    assert len(found(output("a", 16, 3, 8), output("b", *shape))) == 1


def test_a_size_that_nothing_shows_is_not_judged() -> None:
    assert found(output("c", 48, 4)) == []
    assert found(output("a", 16, 3, 8), output("c", 48, 4)) == []
    assert len(found(output("a", 16, 3, 8), output("c", 24, 4))) == 1


def test_what_the_layout_has_on_another_stage_is_left_out() -> None:
    given = Activation("input", TensorFacts("Net", (5, 5), (5, 5), 0))
    assert found(given, rank=0) == []
    assert len(found(given, rank=4, seq=8, batch=4)) == 1


def test_a_summand_is_said_by_its_placement() -> None:
    def placed(name: str, how: Literal["partial", "replicate"]) -> Activation:
        placements = (Placed("dp", "shard", 1), Placed("tp", how))
        return Activation("output", TensorFacts(name, (16, 3, 8), (16, 6, 8), 0, placements))

    assert found(placed("a", "replicate"), placed("b", "partial")) == []
    assert found(placed("a", "partial")) == [
        "output a: it is a summand over `tp`, and over no axis in the layout"
    ]
