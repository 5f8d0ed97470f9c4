"""Images whose channels are last in memory, and that are viewed as if they were first."""

import pytest
import torch
import torch.nn.functional as F

from tspec.runtime.live.samples.images import BATCHES, ViewedImages


def smooth(channels: int, *, grey: bool = False) -> torch.Tensor:
    """Images `[n, height, width, channels]`."""
    drawn = torch.Generator().manual_seed(channels)
    small = torch.randn(8, 1 if grey else channels, 4, 4, generator=drawn)
    large = F.interpolate(small, size=(24, 32), mode="bilinear").expand(-1, channels, -1, -1)
    return large.permute(0, 2, 3, 1).contiguous()


@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.parametrize("grey", [False, True])
def test_views_and_transposes(channels: int, grey: bool) -> None:
    images = smooth(channels, grey=grey)
    viewed = ViewedImages().viewed_as_channels_first
    assert viewed(images.reshape(8, channels, 24, 32)) is True
    assert viewed(images.permute(0, 3, 1, 2)) is False
    assert viewed(images.permute(0, 3, 1, 2).contiguous()) is False


def test_noise_tells_nothing() -> None:
    assert ViewedImages().viewed_as_channels_first(torch.randn(8, 3, 24, 32)) is False
    assert ViewedImages().viewed_as_channels_first(torch.zeros(8, 3, 24, 32)) is False


def test_what_are_no_images() -> None:
    viewed = ViewedImages().viewed_as_channels_first
    for shape in ((8, 1, 24, 32), (8, 16, 24, 32), (8, 3, 4, 32), (3, 24, 32)):
        assert viewed(torch.randn(shape)) is None
    assert viewed(torch.randn(8, 3, 24, 32, requires_grad=True)) is None


def test_later_batches_are_not_read() -> None:
    viewed = ViewedImages().viewed_as_channels_first
    found = [viewed(torch.randn(2, 3, 8, 8)) for _ in range(BATCHES + 1)]
    assert found[-1] is None
    assert None not in found[:-1]
