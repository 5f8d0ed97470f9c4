"""What a loss over alignments (CTC) is given as labels."""

from __future__ import annotations

from typing import Any

import torch

LOSSES = 16
"""So many losses are looked at: later ones are given their labels in the same way."""


@torch.no_grad()
def blank_labels(targets: Any, target_lengths: Any, blank: int) -> int | None:
    """How many labels, within the lengths, are the blank, which no label may be.

    `targets` are `[batch, length]`, or one after the other. None of what is no tensor.
    """
    if not isinstance(targets, torch.Tensor):
        return None
    lengths = torch.as_tensor(target_lengths, device=targets.device)
    labels = targets == blank
    if targets.dim() == 2 and lengths.dim() == 1:
        labels &= torch.arange(targets.shape[1], device=targets.device) < lengths[:, None]
    else:
        labels = labels.flatten()[: int(lengths.sum())]
    return int(labels.sum())
