"""Which part of the reference's loss is that of a rank."""

from __future__ import annotations

import pytest
import torch

from tspec.equivalence.check import ReferenceRecordings, compare
from tspec.equivalence.losses import gradient_factor, loss_factor
from tspec.equivalence.recording import Recording, TensorName
from tspec.equivalence.sides import trial_of
from tspec.resolve import load_text

LOSS = TensorName("losses", "loss", 1, 1)
AXES = (("tp", 2), ("dp", 3))
TEXT = """edition 2026

module example

mesh ranks {
  order: dp
  dp: 2
}

dims ranks {
  hidden: 4
}

layout cut on ranks {
  output "*": [batch / dp, hidden]
}

equivalence e {
  layout cut
  reference { dp: 1 }
  candidate {}
  run 1 step
  compare losses
  within rtol(1e-5)
}
"""


@pytest.mark.parametrize(
    ("losses", "reference", "gradient", "loss"),
    [
        ([1.0, 1.0, 2.0, 2.0, 6.0, 6.0], 3.0, 1 / 3, 1.0),
        ([1.0, 1.0, 2.0, 2.0, 6.0, 6.0], 9.0, 1.0, 3.0),
        ([3.0] * 6, 3.0, 1.0, 1.0),
        ([None, 1.0, None, 2.0, None, 6.0], 3.0, 1 / 3, 1.0),
        ([None] * 6, 3.0, 1.0, 1.0),
    ],
    ids=["mean", "sum", "one batch", "not on all ranks", "none"],
)
def test_a_rank_counts_for_its_part_of_a_mean(losses, reference, gradient, loss) -> None:
    ranks = [Recording({} if x is None else {LOSS: torch.tensor(x)}, {}) for x in losses]
    data = frozenset(("dp",))
    known = {LOSS: torch.tensor(reference)}
    assert gradient_factor(AXES, data, known, ranks) == gradient
    assert loss_factor(AXES, data, known, ranks) == loss


def test_losses_that_a_fault_makes_differ_do_not_count() -> None:
    """A missing sum gives each tensor-parallel rank a loss of its own; they see one batch."""
    ranks = [Recording({LOSS: torch.tensor(x)}, {}) for x in (1.0, 5.0) * 3]
    assert gradient_factor(AXES, frozenset(("dp",)), {LOSS: torch.tensor(3.0)}, ranks) == 1.0


@pytest.mark.parametrize(("second", "factor"), [(0.0, 1 / 2), (1.0, 1.0)], ids=["same", "own"])
def test_ranks_that_were_given_the_same_data_count_as_seeing_other(
    second: float, factor: float
) -> None:
    """Ranks with data of their own and one loss have reduced it."""
    output = TensorName("outputs", "Model", 1, 1)
    loss = torch.tensor(3.0)
    ranks = [Recording({output: torch.full((2,), each), LOSS: loss}, {}) for each in (0.0, second)]
    known = {output: torch.zeros(4), LOSS: torch.tensor(3.1)}
    assert gradient_factor((("dp", 2),), frozenset(("dp",)), known, ranks) == factor


def test_passes_that_the_reference_did_not_make_are_told() -> None:
    program = load_text(TEXT).program
    assert program is not None
    trial = trial_of(program.equivalences[0], ("train.py",))
    one = Recording({LOSS: torch.tensor(1.0)}, {})
    two = Recording(
        {LOSS: one.tensors[LOSS], TensorName("losses", "loss", 1, 2): one.tensors[LOSS]}, {}
    )
    found = compare(trial, ReferenceRecordings(one, ()), [one, two])
    [fault] = found.faults
    assert (str(fault.name), fault.fault.kind) == ("losses loss, step 1, micro-batch 2", "extra")
    assert fault.fault.message == "rank 1 recorded it, and the reference has 1 in the step"
    assert not compare(trial, ReferenceRecordings(one, ()), [one, one]).faults
