"""Finds images whose channels are last in memory and that were viewed as if they were first."""

from __future__ import annotations

from typing import Any

import torch

BATCHES = 16
"""The number of batches that are read. Later ones are made in the same way."""
_CHANNELS = range(2, 5)
_LEAST = 8
"""Images of fewer rows or columns are too small to be smooth."""
_SMOOTHER = 0.7
"""Neighbouring pixels that differ by less than this part of the differences in the image as given
are those of the real image.
"""


class ViewedImages:
    """Reads the first batches of images of a job."""

    def __init__(self) -> None:
        self._read = 0

    @torch.no_grad()
    def viewed_as_channels_first(self, images: Any) -> bool | None:
        """True if images `[n, channels, height, width]` are smooth only when their elements are
        taken in their order as `[n, height, width, channels]`.

        None for other shapes, for small images, for those that were computed with a graph, and after
        the first batches.
        """
        if self._read >= BATCHES or type(images) is not torch.Tensor or images.dim() != 4:
            return None
        count, channels, height, width = images.shape
        if channels not in _CHANNELS or min(height, width) < _LEAST or images.requires_grad:
            return None
        self._read += 1
        last = images.reshape(count, height, width, channels)
        return _roughness(last.permute(0, 3, 1, 2)) < _SMOOTHER * _roughness(images)


def _roughness(images: torch.Tensor) -> float:
    """The mean difference of neighbouring pixels of `[n, channels, height, width]`."""
    values = images.float()
    return float(values.diff(dim=2).abs().mean() + values.diff(dim=3).abs().mean())
