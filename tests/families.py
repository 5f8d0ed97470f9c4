"""Families of slow tests, of which `.ci/run` runs a sample and `make test-all` runs all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import pytest

Member = TypeVar("Member")
EXHAUSTIVE = (pytest.mark.slow, pytest.mark.exhaustive)
"""The marks of a test that `make test-all` alone runs."""


def family(
    members: Iterable[Member],
    sample: Collection[str],
    fast: Collection[str] = (),
    name: Callable[[Member], str] = str,
) -> list[pytest.ParameterSet]:
    """Parameters of a test: those that are not `fast` are slow, and those in neither are left out of `.ci/run`."""
    members = list(members)
    names = [name(member) for member in members]
    assert {*sample, *fast} <= {*names}, {*sample, *fast} - {*names}
    assert not {*sample} & {*fast}

    def marks(named: str) -> tuple[pytest.MarkDecorator, ...]:
        if named in fast:
            return ()
        return (pytest.mark.slow,) if named in sample else EXHAUSTIVE

    return [
        pytest.param(member, id=named, marks=marks(named))
        for member, named in zip(members, names, strict=True)
    ]
