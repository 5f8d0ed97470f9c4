"""What a rank sends others from one update to the next."""

import pytest

from tspec.runtime.live.sent import FEW, SentBytes


@pytest.mark.parametrize(
    ("updates", "alone"),
    [
        # What is sent before the first update makes ranks start alike.
        ([(FEW,)], True),
        ([(FEW,), ()], True),
        ([(), (FEW - 1,), ()], True),
        ([(), (FEW // 2, FEW // 2)], False),
        ([(), (FEW,), ()], False),
    ],
)
def test_bytes_are_counted_from_update_to_update(
    updates: list[tuple[int, ...]], alone: bool
) -> None:
    sent = SentBytes()
    for sizes in updates:
        for size in sizes:
            sent.add(size)
        sent.update_begins()
    assert sent.alone is alone
