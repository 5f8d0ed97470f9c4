"""Selects the events that a training loop calls. Their number and order mean the same in every
program.

The number of multiplications, embeddings or dropouts in a step depends on the model's architecture.
"""

from __future__ import annotations

from tspec.builtin.events import roles_of
from tspec.infer.main_copies import update_of
from tspec.infer.survey import SeenEvent, Survey


def calls_of_the_loop(survey: Survey) -> tuple[SeenEvent, ...]:
    """The events of the training loop that occurred, and those that a user's vocabulary declares."""
    return tuple(
        event for event in survey.events if is_of_the_loop(event) and not is_inner(survey, event)
    )


def is_of_the_loop(event: SeenEvent) -> bool:
    """True if the event is a call of the loop, or declared by a user."""
    return roles_of(event.name).in_loop != "no" or is_of_the_user(event)


def is_inner(survey: Survey, event: SeenEvent) -> bool:
    """True if the event is an update within a framework's update: one for each of its optimizers,
    or none if the step is skipped.
    """
    return roles_of(event.name).updates and event.name != update_of(survey)


def is_once_a_step(event: SeenEvent) -> bool:
    """A step has one call of it, into however many micro-batches its batch is cut."""
    return roles_of(event.name).in_loop == "once" or is_of_the_user(event)


def is_of_the_user(event: SeenEvent) -> bool:
    """True if no module of the standard library declares the event."""
    return not event.declaration.module.startswith("std.")
