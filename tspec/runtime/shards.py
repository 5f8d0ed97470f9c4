"""The parameters in a finding of which this rank holds a shard."""

from __future__ import annotations

from collections.abc import Iterable

from tspec.runtime.edges import StateSource
from tspec.values import shard_in_words


def shards(source: StateSource | None, subjects: Iterable[str]) -> dict[str, str]:
    """The subjects that are sharded parameters -> `a shard of [16, 8] (Shard(0) over tp)`."""
    if source is None:
        return {}
    cut = source.fields("parameter", "cuts")
    found = {name: cuts for name in subjects if isinstance(cuts := cut.get(name), tuple)}
    if not found:
        return {}
    shapes = source.fields("parameter", "whole_shape")
    return {
        name: shard_in_words(shape, cuts)
        for name, cuts in found.items()
        if isinstance(shape := shapes.get(name), tuple)
    }
