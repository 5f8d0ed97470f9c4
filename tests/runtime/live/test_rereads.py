"""Samples that a data set changes while it reads them are told from those that it may change."""

import numpy as np
import pytest
import torch

from tspec.runtime.live.samples.rereads import RereadSamples


class Loader:
    """A loader."""


def passes(read, count: int = 3, between=None) -> list[bool | None]:
    """What is known after each pass in which one batch of four samples is read."""
    rereads, loader, found = RereadSamples(), Loader(), []
    for _ in range(count):
        rereads.draws(loader, [0, 1, 2, 3])
        rereads.collates([read(index) for index in range(4)])
        found.append(rereads.rewritten())
        if between is not None:
            between()
    return found


CLEAN = [None, False, False]


def test_a_cache_that_is_changed_in_place() -> None:
    cache = torch.zeros(4, 3)
    assert passes(lambda i: (cache[i].add_(1), i)) == [None, True, True]
    arrays = {i: np.zeros((2, 2), np.float32) for i in range(4)}

    def noisy(i: int) -> dict[str, torch.Tensor]:
        arrays[i] += 1
        return {"image": torch.from_numpy(arrays[i])[None]}

    assert passes(noisy) == [None, True, True]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_samples_that_are_made_anew_or_stay_as_they_are(dtype) -> None:
    cache = torch.ones(4, 3, dtype=dtype)
    assert passes(lambda i: cache[i] + torch.rand(3)) == CLEAN
    assert passes(lambda i: cache[i].clamp_(0, 1)) == CLEAN
    assert passes(lambda i: cache[i].numpy().copy()) == CLEAN


def test_one_buffer_for_all_samples() -> None:
    buffer = torch.zeros(3)
    assert passes(lambda i: buffer.fill_(i)) == [None, None, None]


def test_data_that_the_script_changes_between_passes() -> None:
    cache = torch.zeros(4, 3)
    assert passes(cache.__getitem__, between=lambda: cache.add_(1)) == CLEAN


def test_collations_that_no_draw_began() -> None:
    rereads = RereadSamples()
    rereads.collates([torch.zeros(3)])
    assert rereads.rewritten() is None
