"""Derivatives of samples without a graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tspec.runtime.live.losses.derivatives import lacks_graph

NET = nn.Linear(4, 1)
DATA = torch.randn(8, 4, requires_grad=True)


def test_derivatives_of_samples_with_respect_to_data() -> None:
    assert lacks_graph(NET(DATA), DATA, False)
    assert lacks_graph([NET(DATA).sum()], [DATA], False)
    assert not lacks_graph(NET(DATA), DATA, True)
    with torch.no_grad():
        assert not lacks_graph(NET(DATA), DATA, False)


def test_other_derivatives() -> None:
    loss = F.binary_cross_entropy_with_logits(NET(DATA), torch.ones(8, 1))
    assert not lacks_graph(loss, DATA, False)  # an attack
    assert not lacks_graph(NET(DATA), NET.weight, False)
    hidden = NET(DATA)
    assert not lacks_graph(hidden.sigmoid(), hidden, False)  # a map of activations
