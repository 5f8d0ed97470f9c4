"""Derivatives without a graph, although the graph that they are computed from is kept."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tspec.runtime.live.losses.derivatives import lacks_graph

NET = nn.Linear(4, 1)
DATA = torch.randn(8, 4, requires_grad=True)


def test_derivatives_of_samples_with_respect_to_data() -> None:
    assert lacks_graph(NET(DATA), DATA, False, True)
    assert lacks_graph([NET(DATA).sum()], [DATA], False, True)
    assert not lacks_graph(NET(DATA), DATA, True, True)
    with torch.no_grad():
        assert not lacks_graph(NET(DATA), DATA, False, True)


def test_other_derivatives() -> None:
    loss = F.binary_cross_entropy_with_logits(NET(DATA), torch.ones(8, 1))
    assert not lacks_graph(loss, DATA, False, True)  # an attack
    assert not lacks_graph(NET(DATA).sum(), DATA, False, None)  # a sampler's: its graph is not kept
    assert not lacks_graph(NET(DATA), NET.weight, False, True)
    hidden = NET(DATA)
    assert not lacks_graph(hidden.sigmoid(), hidden, False, True)  # a map of activations
