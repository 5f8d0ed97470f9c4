"""Which part of the reference's loss is that of a rank."""

from __future__ import annotations

import pytest
import torch

from tspec.equivalence.losses import gradient_factor, loss_factor
from tspec.equivalence.recording import Recording, TensorName

LOSS = TensorName("losses", "loss", 1, 1)
AXES = (("tp", 2), ("dp", 3))


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
