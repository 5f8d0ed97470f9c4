"""The numbers of recorded runs that drafts may bound: the loss of each step, and the inputs of
models and losses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Query = Callable[[str], Sequence[tuple[Any, ...]]]
"""Asks the table of all rows of all runs."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The smallest and the largest of some numbers."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The difference of the two numbers."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class GivenTensor:
    """A tensor that calls of one event were given in one phase, in every run."""

    event: str
    field: str
    item: int | None
    """Its index, if the field is a list."""
    phase: str
    model: str | None
    """The name of the model that is called; None where the event calls none."""
    mean: Extent
    std: Extent
    zeros: Extent
    """The share of zeros."""


@dataclass(frozen=True, slots=True)
class RecordedNumbers:
    """Numbers from all runs."""

    losses: tuple[tuple[float, ...], ...] = ()
    """For each run the last loss of each step, from step 1 on.

    Empty where several optimizers train, or a policy is learned.
    """
    given: tuple[GivenTensor, ...] = ()


NOTHING = RecordedNumbers()


def numbers(ask: Query, runs: int) -> RecordedNumbers:
    """The numbers of all runs, as the first rank of each recorded them."""
    return RecordedNumbers(_losses(ask, runs), _given(ask, runs))


def _losses(ask: Query, runs: int) -> tuple[tuple[float, ...], ...]:
    trained = ask(
        """SELECT run, count(DISTINCT subject) FROM facts
           WHERE tag = 'sample' AND what = 'optimizer' AND rank = 0 GROUP BY run"""
    )
    if len(trained) != runs or any(count != 1 for _, count in trained):
        return ()
    if ask("SELECT 1 FROM facts WHERE tag = 'begin' AND what = 'decision' LIMIT 1"):
        return ()  # the data of a policy depends on its actions
    found: list[dict[int, float]] = [{} for _ in range(runs)]
    for run, step, loss in ask(
        """SELECT run, step, float FROM facts
           WHERE tag = 'sample' AND what = 'context' AND field = 'loss' AND rank = 0
             AND type = 'float' AND step > 0
           ORDER BY run, step, seq"""
    ):
        found[run][step] = loss
    curves = []
    for losses in found:
        last = max(losses, default=0)
        if sorted(losses) != list(range(1, last + 1)):
            return ()  # a resumed run, or one with steps of other kinds
        curves.append(tuple(losses[step] for step in range(1, last + 1)))
    return tuple(curves)


def _given(ask: Query, runs: int) -> tuple[GivenTensor, ...]:
    rows = ask(
        f"""SELECT named.what, said.field, said.item, named.phase, split_part(called.text, ' ', 2),
                   min(said.mean), max(said.mean),
                   min(said.std), max(said.std), min(said.zeros / said.numel), max(said.zeros / said.numel)
            FROM facts said JOIN facts named USING (run, rank, call)
              LEFT JOIN (SELECT run, rank, call, text FROM facts
                         WHERE tag = 'begin' AND field = 'module' AND type = 'ref') called
                USING (run, rank, call)
            WHERE named.tag = 'begin' AND named.place = 0 AND said.tag = 'begin'
              AND named.what IN ('forward', 'cross_entropy', 'pointwise_loss', 'logistic_loss', 'likelihood')
              AND said.field IN ('inputs', 'target') AND said.type = 'tensor'
              AND said.mean IS NOT NULL AND said.std IS NOT NULL AND said.numel > 1 AND rank = 0
              AND (called.text IS NULL OR split_part(called.text, ' ', 2) IN (
                SELECT subject FROM facts
                WHERE tag = 'sample' AND what = 'module' AND field = 'root' AND bool))
            GROUP BY ALL HAVING count(DISTINCT run) = {runs} AND count(DISTINCT call) > 4
            ORDER BY ALL"""
    )
    return tuple(
        GivenTensor(
            event, field, item, phase, model or None,
            Extent(low_mean, high_mean), Extent(low_std, high_std), Extent(low_zeros, high_zeros),
        )
        for event, field, item, phase, model,
            low_mean, high_mean, low_std, high_std, low_zeros, high_zeros in rows
    )  # fmt: skip
