"""Choices by probabilities that sum to one along another dimension."""

import pytest
import torch

from tspec.runtime.live.losses.choices import choices_across


@pytest.mark.parametrize(
    ("chosen", "across"),
    [
        (lambda x: x.softmax(0).topk(2, -1), True),
        (lambda x: x.softmax(-2).topk(2), True),
        (lambda x: (x.softmax(0) * 0.5).view(2, 3, 4).topk(2, -1), True),
        (lambda x: x.log_softmax(0).t().topk(2, 0), True),
        (lambda x: x.softmax(-1).topk(2, -1), False),
        (lambda x: x.softmax(1).topk(3, 0), False),  # experts choose tokens
        (lambda x: x.softmax(1).t().topk(3), False),
        (lambda x: x.softmax(0).topk(3, 0), False),  # the tokens that are looked at most
        (lambda x: x.topk(2), False),
        (lambda x: (x.softmax(0) + x).topk(2), False),
    ],
)
def test_choices_are_among_what_the_probabilities_are_shared_out_among(chosen, across) -> None:
    logits = torch.randn(6, 4, requires_grad=True)
    assert choices_across(chosen(logits).values.sum()) == (["[6, 4]"] if across else [])
