"""Rules that were compiled for some values say so in a job that has others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tspec.runtime.edges import Context
from tspec.runtime.given import CompiledFor
from tspec.values import Missing


def source(groups: dict[str, tuple[int, ...]], **ambient: Any) -> Any:
    """A job with groups and context values."""
    return SimpleNamespace(
        context=Context(3),
        groups=lambda: groups,
        ambient=lambda name: ambient.get(name, Missing.NOT_RECORDED),
    )


@pytest.mark.parametrize(
    ("given", "job"),
    [
        (CompiledFor(), source({"tp": (0, 1)})),
        (CompiledFor(sizes={"tp": 2}), source({"tp": (0, 1)})),
        (CompiledFor(sizes={"tp": 1}), source({})),
        (CompiledFor(values={"amp": False}), source({}, amp=False)),
        (CompiledFor(values={"amp": False}), source({})),
        (CompiledFor(values={"step": 7}), source({})),
    ],
)
def test_a_job_that_fits(given: CompiledFor, job: Any) -> None:
    assert [*given.misfits(job)] == []


@pytest.mark.parametrize(
    ("given", "job", "said"),
    [
        (
            CompiledFor(sizes={"tp": 2}),
            source({"tp": (3,)}),
            "the rules were compiled for tp=2, and this job has tp=1: what tp=2 decides is not checked;"
            " compile them with --given tp=1, or without tp",
        ),
        (
            CompiledFor(sizes={"tp": 1}),
            source({"tp": (0, 1)}),
            "the rules were compiled for tp=1, and this job has tp=2: what tp=1 decides is not checked;"
            " compile them with --given tp=2, or without tp",
        ),
        (
            CompiledFor(sizes={"tp": 2}),
            source({}),
            "the rules were compiled for tp=2, and no axis tp is known of this job: what tp=2 decides is"
            " not checked; compile them with --given tp=1, or without tp",
        ),
        (
            CompiledFor(values={"amp": False}),
            source({}, amp=True),
            "the rules were compiled for amp=false, and this job has amp=true: what amp=false decides is"
            " not checked; compile them with --given amp=true, or without amp",
        ),
    ],
)
def test_a_job_that_does_not_fit(given: CompiledFor, job: Any, said: str) -> None:
    assert [*given.misfits(job)] == [said]
