"""What a rank sends others from one update to the next."""

from tspec.runtime.live.updates.sent import FEW, SentBytes


def test_bytes_are_counted_from_update_to_update() -> None:
    sent = SentBytes()
    said = []
    for sizes in ((FEW,), (FEW // 2, FEW // 2), (FEW - 1,), (), (FEW,)):
        for size in sizes:
            sent.add(size)
        sent.update_begins()
        said.append(sent.alone())
    # What is sent before the first update makes ranks start alike.
    assert said == [True, False, True, True, False]
