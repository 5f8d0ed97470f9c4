"""The relations that inference looks for, one a file; adding one is adding a file and a line here."""

from __future__ import annotations

from collections.abc import Callable

from tspec.infer.heads import Claim
from tspec.infer.relations import (
    accumulation,
    advice,
    argument,
    change,
    consistent,
    contains,
    distinct,
    evaluated,
    graph,
    learning,
    output,
    ranges,
    schedule,
    sequence,
    tied,
)
from tspec.infer.survey import Survey

Relation = Callable[[Survey], tuple[Claim, ...]]

RELATIONS: tuple[Relation, ...] = (
    contains.propose,
    sequence.propose,
    change.propose,
    consistent.propose,
    argument.propose,
    distinct.propose,
    evaluated.propose,
    graph.propose,
    learning.propose,
    output.propose,
    ranges.propose,
    schedule.propose,
    tied.propose,
    accumulation.propose,
    advice.propose,
)
