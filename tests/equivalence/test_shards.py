"""What each rank is to hold of a tensor, by a layout with stages, ties and experts."""

from __future__ import annotations

import pytest
import torch

from tests.equivalence.trials import trial_of
from tspec.equivalence.cut import whole
from tspec.equivalence.merge import MergeFault
from tspec.equivalence.recording import Recording, TensorName
from tspec.equivalence.shards import indivisible, merge_by_layout, shards_held, summand_axes
from tspec.resolve import load_text

TEXT = """edition 2026

module example

mesh ranks {
  order: tp, pp
  tp: 2
  pp: 2
  regroup experts {
    order: ep, pp
    ep: 2
    pp: 2
  }
}

dims ranks {
  words: 8
  width: 4
  experts: 4
}

layout model on ranks replicated ep {
  param "embedding.weight": [words / tp, width]
  param "layers.*.experts.fc.weight": [experts / ep, width, width]

  tied "embedding.weight" == "head.weight"

  stage 0: "embedding", "layers.0"
  stage 1: "layers.1", "head"
}

equivalence e {
  layout model
  reference { tp: 1, pp: 1 }
  candidate { tp: 2 }
  run 1 step
  compare params
  within 3 * noise()
}
"""


def ranks_and_starts(name: str, full: tuple[int, ...]) -> list[tuple[int, int]]:
    """The ranks that are to hold a shard of a parameter, and the row with which the shard begins."""
    program = load_text(TEXT).program
    assert program is not None, load_text(TEXT).diagnostics
    found = shards_held(trial_of(program.equivalences[0], ()), TensorName("params", name, 1), full)
    return [(each.rank, each.cut.runs[0][0][0]) for each in found]


def test_both_stages_hold_a_tied_tensor() -> None:
    held = [(0, 0), (1, 4), (2, 0), (3, 4)]
    assert ranks_and_starts("embedding.weight", (8, 4)) == held
    assert ranks_and_starts("head.weight", (8, 4)) == held


@pytest.mark.parametrize(("name", "rank"), [("layers.0", {1: 0, 2: 1}), ("layers.1", {0: 2, 3: 3})])
def test_an_expert_is_a_part_of_the_tensor_of_all(name: str, rank: dict[int, int]) -> None:
    for expert, holder in rank.items():
        one = f"{name}.experts.local_experts.{expert}.fc.weight"
        assert ranks_and_starts(one, (4, 4)) == [(holder, 0)]


def test_a_tensor_without_a_place_is_held_by_none() -> None:
    program = load_text(TEXT).program
    assert program is not None
    trial = trial_of(program.equivalences[0], ())
    for name in ("other.local_experts.0.weight", "other.weight"):
        full = whole((4,)).shape
        assert shards_held(trial, TensorName("params", name, 1), full) == []


def test_a_size_of_the_input_that_does_not_divide_is_told_and_no_size_of_the_model() -> None:
    """As the last batch of a data set."""
    text = TEXT.replace("  tied ", '  output "head": [batch / tp, words]\n\n  tied ', 1)
    program = load_text(text).program
    assert program is not None
    asked = trial_of(program.equivalences[0], ())
    head = TensorName("outputs", "head", 1, 1)
    assert indivisible(asked, head, (6, 8)) == ""
    why = "`batch` of 7 is not divisible into 2 parts over `tp`"
    assert indivisible(asked, head, (7, 8)) == why
    assert indivisible(asked, head, (7,)) == ""  # its place does not fit, which is told as such
    assert indivisible(asked, TensorName("params", "embedding.weight", 1), (7, 4)) == ""


@pytest.mark.parametrize("comes_first", [True, False])
def test_of_two_places_for_an_expert_the_first_counts(comes_first: bool) -> None:
    """One for the tensor of all experts, and one for any tensor."""
    of_all = '  param "layers.*.experts.fc.weight": [experts / ep, width, width]\n'
    of_any = '  param "*": [width, width] replicated tp\n'
    places = of_all + of_any if comes_first else of_any + of_all
    program = load_text(TEXT.replace(of_all, places, 1)).program
    assert program is not None
    name = TensorName("params", "layers.1.experts.3.fc.weight", 1)
    found = shards_held(trial_of(program.equivalences[0], ()), name, (4, 4))
    assert [each.rank for each in found] == ([3] if comes_first else [2, 3])


def test_replicas_of_an_input_may_have_summands_of_its_gradient_unless_its_place_says() -> None:
    of_input = '  input "head": [batch, width] replicated tp\n'
    of_gradient = '  input_grad "head": [batch, width] partial tp\n'
    name = TensorName("input_grads", "head", 1, 1)
    for places, axes, summands in (
        (of_input, [{"tp", "pp", "ep"}], [(), ()]),
        (of_input + of_gradient, [], [(0,), (1,)]),
    ):
        program = load_text(TEXT.replace("  tied ", f"{places}\n  tied ", 1)).program
        assert program is not None
        trial = trial_of(program.equivalences[0], ())
        assert [set(each) for each in summand_axes(trial, name, frozenset())] == axes
        found = [each.summand for each in shards_held(trial, name, (3, 4))]
        assert found == summands


@pytest.mark.parametrize(
    ("place", "axes"),
    [
        ('output "head": [seq, width] replicated tp', [{"tp"}]),
        ('output "head": [seq / tp, width]', []),
        ('output "head": [seq, width] partial tp', []),
        ('output_grad "head": [seq, width] replicated tp', []),
    ],
)
def test_an_output_that_all_ranks_have_gets_a_gradient_from_each_ones_loss(
    place: str, axes: list[set[str]]
) -> None:
    """The axis cuts the data. Shards with summands over it are of other summands."""
    program = load_text(TEXT.replace("  tied ", f"  {place}\n\n  tied ", 1)).program
    assert program is not None
    trial = trial_of(program.equivalences[0], ())
    name = TensorName("output_grads", "head", 1, 1)
    found = summand_axes(trial, name, frozenset({"tp"}))
    assert [set(each) for each in found] == axes
    for each in found:
        pieces = shards_held(trial, name, (3, 4), each)
        assert [piece.summand for piece in pieces] == [(0,), (1,)]


def recorded(name: TensorName, ranks: tuple[int, ...]) -> tuple[MergeFault, ...]:
    """What does not fit together if these ranks, of tp 2 and pp 2, recorded a tensor of four expert rows."""
    full = (4, 4, 4) if "experts" in name.name else (8, 4)
    piece = torch.zeros(full[0] // 2, *full[1:])
    held = [piece if rank in ranks else None for rank in range(4)]
    program = load_text(TEXT).program
    assert program is not None
    trial = trial_of(program.equivalences[0], ())
    found = merge_by_layout(trial, name, full, held, [Recording({}, {})] * 4)
    assert found is not None
    return found.faults


def test_a_parameter_on_another_stage_than_the_layout_says_is_told() -> None:
    weight = TensorName("params", "layers.1.experts.fc.weight", 1)
    assert recorded(weight, (2, 3)) == ()
    says = "ranks 0, 1 of stage 0 have it, and the layout has it on stage 1, where"
    assert recorded(weight, (0, 1)) == (MergeFault("stage", f"{says} ranks 2, 3 recorded none"),)
    # A rank may have modules of other stages besides its own.
    assert recorded(weight, (0, 1, 2, 3)) == ()
    assert [each.kind for each in recorded(weight, (2,))] == ["missing"]
    assert [each.kind for each in recorded(weight, ())] == ["missing"]


def test_a_tied_tensor_is_on_no_other_stage() -> None:
    tied = TensorName("params", "embedding.weight", 1)
    assert recorded(tied, (0, 1, 2, 3)) == ()
    assert [each.kind for each in recorded(tied, (0, 1))] == ["missing"]
