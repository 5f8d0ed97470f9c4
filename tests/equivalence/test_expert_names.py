"""Names of experts: a rank's own, from 0 on, and those that the reference has for the same."""

from __future__ import annotations

import torch

from tests.equivalence.trials import trial_of
from tspec.equivalence.expert_names import ExpertNames, as_known, names_of_ranks, together
from tspec.equivalence.recording import ModuleCall, ModuleInput, Recording, TensorName
from tspec.resolve import load_text

TEXT = """\
edition 2026

module a

mesh ranks {
  order: dp
  dp: 2
  regroup experts {
    order: ep
    ep: 2
  }
}

dims ranks {
  experts: 4
  hidden: 3
}

layout mixture on ranks replicated dp {
  param "*.experts.weight": [experts / ep, hidden, hidden]
  param "*": [hidden, hidden]
}

/// Two ranks compute what one computes.
equivalence same {
  layout mixture
  reference { dp: 1 }
  candidate { dp: 2 }
  run 1 step
  compare params
  within rtol(1e-5)
}
"""
NAMES = tuple(f"layers.1.experts.{number}.weight" for number in range(4))


def recorded(*names: str) -> Recording:
    """Parameters of these names, each of the number that its expert has there."""
    tensors = {TensorName("params", name, 0): torch.full((3, 3), 1.0) for name in names}
    module = ModuleCall("Linear", "layers.1", "", "", (ModuleInput("layers.1.experts.0"),))
    return Recording(tensors, {}, {names[0].removesuffix(".weight"): module})


def on_ranks() -> tuple[ExpertNames, ...]:
    program = load_text(TEXT).program
    assert program is not None, load_text(TEXT).diagnostics
    reference = recorded(*NAMES, "layers.1.router.weight")
    return names_of_ranks(trial_of(program.equivalences[0], ()), reference)


def test_a_rank_holds_the_experts_that_the_layout_gives_it() -> None:
    assert [each.held for each in on_ranks()] == [
        {"layers.1.experts": (0, 1)},
        {"layers.1.experts": (2, 3)},
    ]


def test_numbers_from_0_on_are_those_of_the_rank() -> None:
    first, second = on_ranks()
    mine = recorded(NAMES[0], NAMES[1], "layers.1.router.weight")
    assert as_known(mine, first) == mine
    found = as_known(mine, second)
    assert [each.name for each in found.tensors] == [*NAMES[2:], "layers.1.router.weight"]
    [(name, call)] = found.modules.items()
    assert (name, call.inputs[0].name) == ("layers.1.experts.2", "layers.1.experts.2")


def test_a_rank_that_has_the_references_numbers_keeps_them() -> None:
    _, second = on_ranks()
    mine = recorded(*NAMES[2:])
    assert as_known(mine, second) == mine


def test_a_rank_is_told_of_what_it_holds_under_both_names() -> None:
    _, second = on_ranks()
    assert second.beside({NAMES[3]: 5, "layers.1.router.weight": 6}) == {
        NAMES[1]: 5,
        NAMES[3]: 5,
        "layers.1.router.weight": 6,
    }


def test_tensors_that_ranks_call_alike_are_kept_whole_together() -> None:
    asked = frozenset({TensorName("params", NAMES[3], 1)})
    assert {each.name for each in together(on_ranks(), asked)} == {NAMES[1], NAMES[3]}
