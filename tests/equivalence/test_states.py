"""States of optimizers: what is recorded of them, and how far they may be off."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from tests.equivalence.test_observer import observed
from tests.equivalence.trials import trial_of
from tspec.equivalence.compare import Comparer
from tspec.equivalence.cut import whole
from tspec.equivalence.merge import Merged, RankShard, merge
from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.recording import Recording, TensorName
from tspec.equivalence.shards import merge_by_layout, names_of
from tspec.resolve import load_text
from tspec.resolve.program.trials import Combined, Noise, Number


def test_states_are_recorded_before_the_first_step_and_after_each(tmp_path: Path) -> None:
    net = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    optimizer.state[net.weight] = {
        "step": torch.tensor(4.0),
        "exp_avg": torch.full((2, 3), 2.0),
        "exp_avg_sq": torch.full((2, 3), 3.0),
    }

    def train() -> None:
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.ones(2, 3)).square().mean().backward()
            optimizer.step()

    found = observed(tmp_path, Orders(2, ("states",)), train).tensors
    of = {(each.step, each.name) for each in found if each.kind == "states"}
    restored = {(0, "weight.exp_avg"), (0, "weight.exp_avg_sq")}
    keys = ("weight.exp_avg", "weight.exp_avg_sq", "bias.exp_avg", "bias.exp_avg_sq")
    assert of == restored | {(step, key) for step in (1, 2) for key in keys}
    assert torch.equal(found[TensorName("states", "weight.exp_avg", 0)], torch.full((2, 3), 2.0))
    after = optimizer.state[net.bias]["exp_avg_sq"]
    assert torch.equal(found[TensorName("states", "bias.exp_avg_sq", 2)], after)


def test_a_state_has_its_parameters_name_with_a_key() -> None:
    name = TensorName("states", "fc.weight.exp_avg", 2)
    assert (name.subject, name.key, str(name)) == (
        *("fc.weight", "exp_avg"),
        "states fc.weight.exp_avg, step 2",
    )
    assert name.of("head.weight").name == "head.weight.exp_avg"
    assert str(TensorName("states", "b.exp_avg", 0)) == "states b.exp_avg, before step 1"
    other = TensorName("params", "fc.weight", 1)
    assert (other.subject, other.key, other.of("head.weight").name) == (
        *("fc.weight", ""),
        "head.weight",
    )


GRADIENT = TensorName("param_grads", "b", 1)
SQUARES = TensorName("states", "b.exp_avg_sq", 1)
THREE = Combined("*", Number(3.0), Noise())


def test_a_state_may_be_off_by_what_the_squares_of_its_gradient_may_be() -> None:
    """One perturbed run hardly moved the squares: those of its elements that moved are small."""
    gradient = torch.linspace(1.0, 2.0, 50, dtype=torch.float64)
    reference = {GRADIENT: gradient, SQUARES: 0.001 * gradient**2}
    sample = {GRADIENT: gradient * 1.01, SQUARES: reference[SQUARES] * 1.001}
    comparer = Comparer(reference, [sample], THREE)
    times = [comparer.compared(SQUARES, 0.001 * (gradient * by) ** 2).times for by in (1.02, 1.2)]
    assert times[0] < 1 < times[1]


def test_states_of_one_key_say_which_of_them_are_zero() -> None:
    """Squares are smaller than what they are squares of: none of them is taken for round-off."""
    first = TensorName("states", "b.exp_avg", 1)
    reference = {first: torch.full((4,), 1.0), SQUARES: torch.full((4,), 1e-12)}
    found = Comparer(reference, [reference], THREE).compared(SQUARES, torch.full((4,), 2e-12))
    assert found.times > 1e5


def test_replicas_of_a_state_have_the_same_bits() -> None:
    reference = {SQUARES: torch.ones(4)}
    held = torch.ones(4), torch.ones(4).nextafter(torch.tensor(2.0))
    pieces = [RankShard(rank, whole((4,)), each) for rank, each in enumerate(held)]
    merged: Merged = merge((4,), pieces)
    [fault] = Comparer(reference, [reference], THREE).faults(SQUARES, merged)
    assert fault.fault.message == "replicas on ranks 0, 1 differ by 1.2e-07 of the tensor"


TEXT = """edition 2026

module example

mesh ranks {
  order: dp
  dp: 2
}

dims ranks {
  hidden: 4
}

layout cut on ranks replicated dp {
  param "fc.weight": [hidden, hidden]
  tied "fc.weight" == "head.weight"
}

equivalence e {
  layout cut
  reference { dp: 1 }
  candidate { dp: 2 }
  run 1 step
  compare states
  within 3 * noise()
}
"""


def test_parts_of_a_distributed_optimizer_make_a_state() -> None:
    """Each rank says which elements of the parameter it updates; a tied copy has the other name."""
    program = load_text(TEXT).program
    assert program is not None
    asked = trial_of(program.equivalences[0], ("train.py",))
    name = TensorName("states", "fc.weight.exp_avg", 1)
    assert [each.name for each in names_of(asked, name)] == [
        *("fc.weight.exp_avg", "head.weight.exp_avg")
    ]
    full = torch.arange(16.0)
    cuts = ((0, 6), (6, 16))
    ranks = [Recording({name: full[a:b]}, {}, parts={"fc.weight": (a, b)}) for a, b in cuts]
    held = [each.tensors[name] for each in ranks]
    merged = merge_by_layout(asked, name, (4, 4), held, ranks)
    assert merged is not None and merged.faults == () and merged.tensor is not None
    assert torch.equal(merged.tensor, full.view(4, 4).double())
    # A rank whose parameter is updated elsewhere keeps no state of it.
    owners = [
        Recording({name: full.view(4, 4)}, {}),
        Recording({}, {}, elsewhere=frozenset({"fc.weight"})),
    ]
    owned = merge_by_layout(asked, name, (4, 4), [full.view(4, 4), None], owners)
    assert owned is not None and (owned.faults, owned.spreads) == ((), ())
    assert owned.tensor is not None and torch.equal(owned.tensor, full.view(4, 4).double())
    nobody = merge_by_layout(asked, name, (4, 4), [None, None], [owners[1], owners[1]])
    assert nobody is not None and [each.kind for each in nobody.faults] == ["omission"]
    # What has no number for each element has no place.
    assert merge_by_layout(asked, name, (4,), held, ranks) is None
