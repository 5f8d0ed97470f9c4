"""The labels that a loss over alignments (CTC) is given."""

from __future__ import annotations

from typing import Any

import torch


@torch.no_grad()
def blank_labels(targets: Any, target_lengths: Any, blank: int) -> int | None:
    """Counts the labels, within the given lengths, that equal the blank. No label may be the blank.

    `targets` are `[batch, length]`, or concatenated. None if `targets` is no tensor.
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


@torch.no_grad()
def without_room(input_lengths: Any, target_lengths: Any) -> float | None:
    """The fraction of samples with fewer frames than labels, which no alignment fits; None without
    samples.
    """
    frames, labels = torch.as_tensor(input_lengths), torch.as_tensor(target_lengths)
    if not frames.numel():
        return None
    return float((frames.cpu() < labels.cpu()).double().mean())
