"""Which part of the reference's loss is that of a rank."""

from __future__ import annotations

import pytest
import torch

from tspec.equivalence.losses import gradient_factor
from tspec.equivalence.recording import Recording, TensorName

LOSS = TensorName("losses", "loss", 1, 1)
AXES = (("tp", 2), ("dp", 3))


@pytest.mark.parametrize(
    ("losses", "reference", "factor"),
    [
        ([1.0, 1.0, 2.0, 2.0, 6.0, 6.0], 3.0, 1 / 3),
        ([1.0, 1.0, 2.0, 2.0, 6.0, 6.0], 9.0, 1.0),
        ([3.0] * 6, 3.0, 1.0),
        ([None, 1.0, None, 2.0, None, 6.0], 3.0, 1 / 3),
        ([None] * 6, 3.0, 1.0),
    ],
    ids=["mean", "sum", "one batch", "not on all ranks", "none"],
)
def test_a_rank_counts_for_its_part_of_a_mean(losses, reference, factor) -> None:
    ranks = [Recording({} if x is None else {LOSS: torch.tensor(x)}, {}) for x in losses]
    assert gradient_factor(AXES, {LOSS: torch.tensor(reference)}, ranks) == factor
