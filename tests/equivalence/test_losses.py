"""Which part of the reference's loss is that of a rank."""

from __future__ import annotations

from math import log

import pytest
import torch

from tests.equivalence.trials import trial_of
from tspec.equivalence.check import compare
from tspec.equivalence.losses import LossScale, loss_scale
from tspec.equivalence.recording import Recording, TensorName
from tspec.equivalence.runs import ReferenceRecordings
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


def scale(axes, data, reference, candidate, gradients=None) -> LossScale:
    """With gradients of parameters that are so many times the reference's."""
    moved = None if gradients is None else log(gradients)
    return loss_scale(axes, data, reference, candidate, lambda: moved)


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
    assert scale(AXES, data, known, ranks) == LossScale(loss, gradient)


def test_losses_that_a_fault_makes_differ_do_not_count() -> None:
    """A missing sum gives each tensor-parallel rank a loss of its own; they see one batch."""
    ranks = [Recording({LOSS: torch.tensor(x)}, {}) for x in (1.0, 5.0) * 3]
    known = {LOSS: torch.tensor(3.0)}
    assert scale(AXES, frozenset(("dp",)), known, ranks).gradients == 1.0


@pytest.mark.parametrize(("second", "factor"), [(0.0, 1 / 2), (1.0, 1.0)], ids=["same", "own"])
def test_ranks_that_were_given_the_same_data_count_as_seeing_other(
    second: float, factor: float
) -> None:
    """Ranks with data of their own and one loss have reduced it."""
    output = TensorName("outputs", "Model", 1, 1)
    loss = torch.tensor(3.0)
    ranks = [Recording({output: torch.full((2,), each), LOSS: loss}, {}) for each in (0.0, second)]
    known = {output: torch.zeros(4), LOSS: torch.tensor(3.1)}
    assert scale((("dp", 2),), frozenset(("dp",)), known, ranks).gradients == factor


@pytest.mark.parametrize(
    ("times", "gradients", "expected"),
    [
        (4.0, 1.0, LossScale(1 / 4, 1 / 8, 4.0)),
        (1 / 4, 1.0, LossScale(4.0, 2.0, 1 / 4)),
        (4.1, 0.7, LossScale(1 / 4, 1 / 8, 4.0)),
        (4.0, 1 / 4, LossScale(1 / 4, 1 / 8, 4.0)),
        (4.0, 4.0, LossScale(1.0, 1 / 2)),
        (1 / 4, 1 / 4, LossScale(2.0, 1.0)),
        (4.0, None, LossScale(1.0, 1 / 2)),
        (2.0, 1.0, LossScale(1.0, 1 / 2)),
        (1.0, 4.0, LossScale(1.0, 1 / 2)),
    ],
    ids=["times", "part", "fault", "other", "both", "both parts", "unknown", "else", "gradients"],
)
def test_losses_are_off_by_the_number_of_microbatches_if_gradients_are_not(
    times: float, gradients: float | None, expected: LossScale
) -> None:
    """Of four micro-batches on two ranks that see other data."""
    names = [TensorName("losses", "loss", 1, each) for each in range(1, 5)]
    known = {name: torch.tensor(float(name.microbatch)) for name in names}
    ranks = [
        Recording({name: whole * times * own for name, whole in known.items()}, {})
        for own in (0.9, 1.1)
    ]
    found = scale((("dp", 2),), frozenset(("dp",)), known, ranks, gradients)
    assert found == expected
    one = {name: known[name] for name in names[:1]}
    assert scale((("dp", 2),), frozenset(("dp",)), one, ranks, 1.0).microbatches == 1


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
