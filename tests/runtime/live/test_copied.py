"""What no optimizer holds was copied if it ever held the values of a copy that is trained, where an update began."""

import pytest
import torch

from tspec.runtime.live.features import features
from tspec.runtime.live.updates.copied import CopiedParameters


@pytest.mark.parametrize(("alike", "copied"), [(1, True), (3, True), (None, False)])
def test_values_that_were_alike_once_were_copied(alike: int | None, copied: bool) -> None:
    known = CopiedParameters(features)
    target, trained = torch.zeros(4, 4), torch.ones(4, 4)
    for number in range(1, 6):
        if number == alike:
            target.copy_(trained)
        assert known.is_due()
        known.before_update([(target, [torch.full((4, 4), -1.0), trained])])
        trained += 1
    assert (target in known) is copied


def test_what_is_trained_in_higher_precision_is_compared_as_it_is_rounded() -> None:
    known = CopiedParameters(features)
    exact = torch.tensor([1.0, 1 / 3, 2.0])
    layer, other = exact.bfloat16(), torch.ones(3, dtype=torch.bfloat16)
    known.before_update([(layer, [exact]), (other, [exact])])
    assert layer in known
    assert other not in known


def test_what_has_no_trained_copy_was_not_copied() -> None:
    """Of two alike models that no optimizer holds, neither is copied."""
    known = CopiedParameters(features)
    weight = torch.zeros(3)
    known.before_update([(weight, [])])
    assert weight not in known


def test_later_updates_are_looked_at_one_in_ten() -> None:
    known = CopiedParameters(features)
    due = [number for number in range(1, 52) if known.is_due()]
    assert due == [*range(1, 21), 30, 40, 50]
