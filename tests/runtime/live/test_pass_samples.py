"""Passes over a loader are compared by all the samples that they give out."""

import pytest
import torch

from tspec.runtime.live.samples.passes import LEAST_KEPT, PassSamples

SAMPLES = torch.randn(640, 3, generator=torch.Generator().manual_seed(0))
SIZE = 64


class Iterator:
    """An iterator of a loader."""


def of_pass(samples: torch.Tensor, *, length: object = None) -> list[int | None]:
    """What is known at each batch of a pass."""
    known, iterator, batches = PassSamples(), Iterator(), samples.split(SIZE)
    known.begins(iterator)
    last = len(batches) if length is None else length
    return [known.given(iterator, [batch], last) for batch in batches]


def test_the_last_batch_tells_the_samples_in_any_order() -> None:
    order = torch.randperm(len(SAMPLES), generator=torch.Generator().manual_seed(1))
    *before, number = of_pass(SAMPLES)
    assert number is not None and set(before) == {None}
    assert of_pass(SAMPLES[order])[-1] == number
    assert of_pass(SAMPLES[: len(SAMPLES) // 2])[-1] not in (None, number)


def test_a_last_batch_of_few_samples() -> None:
    assert of_pass(torch.cat((SAMPLES, SAMPLES.new_ones(1, 3))))[-1] == of_pass(SAMPLES)[-1]


@pytest.mark.parametrize(
    "samples",
    [
        SAMPLES[: LEAST_KEPT - 1],
        SAMPLES[:32].repeat(20, 1),
        torch.zeros(640, 3),
        torch.arange(640.0),
    ],
    ids=["few", "repeated", "one value", "one number each"],
)
def test_samples_that_cannot_be_told_apart(samples) -> None:
    assert set(of_pass(samples)) == {None}


def test_a_loader_without_a_length() -> None:
    assert set(of_pass(SAMPLES, length=object())) == {None}


def test_an_iterator_whose_beginning_was_not_seen() -> None:
    assert PassSamples().given(Iterator(), [SAMPLES], 1) is None
