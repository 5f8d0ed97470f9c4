"""Labels of a loss over alignments."""

from __future__ import annotations

import torch

from tspec.runtime.live.losses.alignments import blank_labels, without_room

PADDED = torch.tensor([[3, 4, 0], [5, 0, 0]])


def test_padding_counts_where_the_lengths_hold_it() -> None:
    assert blank_labels(PADDED, torch.tensor([2, 1]), 0) == 0
    assert blank_labels(PADDED, (3, 3), 0) == 3
    assert blank_labels(PADDED, torch.tensor([2, 1]), 4) == 1


def test_labels_one_after_the_other() -> None:
    joined = torch.tensor([3, 4, 5, 0, 0])
    assert blank_labels(joined, torch.tensor([2, 1]), 0) == 0
    assert blank_labels(joined, torch.tensor([2, 2]), 0) == 1
    assert blank_labels(PADDED[0], torch.tensor(2), 0) == 0


def test_samples_with_fewer_frames_than_labels() -> None:
    assert without_room(torch.tensor([8, 8]), torch.tensor([2, 9])) == 0.5
    assert without_room((8, 8), (2, 8)) == 0
    assert without_room(torch.tensor([1, 1]), (2, 2)) == 1
    assert without_room((), ()) is None
