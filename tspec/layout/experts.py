"""Experts that a framework holds one by one, and the tensor that a layout has of all of a layer."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ONE = re.compile(r"\.local_experts\.(\d+)(?=\.)")


@dataclass(frozen=True, slots=True)
class Expert:
    """A tensor of one expert; `number` is its place in the tensor `all`, whose first dimension is the expert."""

    name: str
    all: str
    number: int


def expert_of(name: str) -> Expert | None:
    """The expert whose tensor has a name, as `mlp.experts.local_experts.3.linear_fc1.weight`; None if it is none's."""
    found = _ONE.search(name)
    return None if found is None else Expert(name, _ONE.sub("", name, count=1), int(found[1]))
