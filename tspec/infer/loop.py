"""Which events are calls of a training loop: of these, number and order mean the same in every program.

How often a model multiplies, embeds or drops out in a step is its architecture's affair.
"""

from __future__ import annotations

from tspec.builtin.events import roles_of
from tspec.infer.main_copies import update_of
from tspec.infer.survey import SeenEvent, Survey


def calls_of_the_loop(survey: Survey) -> tuple[SeenEvent, ...]:
    """Events of the training loop that occurred, and those that a vocabulary of the user's declares."""
    return tuple(
        event for event in survey.events if is_of_the_loop(event) and not is_inner(survey, event)
    )


def is_of_the_loop(event: SeenEvent) -> bool:
    """It is one of the loop's calls, or one that a user found worth declaring."""
    return roles_of(event.name).in_loop != "no" or is_of_the_user(event)


def is_inner(survey: Survey, event: SeenEvent) -> bool:
    """Whether it is an update within that of a framework: one for each of its optimizers, or none
    if the step is skipped.
    """
    return roles_of(event.name).updates and event.name != update_of(survey)


def is_once_a_step(event: SeenEvent) -> bool:
    """A step has one call of it, into however many micro-batches its batch is cut."""
    return roles_of(event.name).in_loop == "once" or is_of_the_user(event)


def is_of_the_user(event: SeenEvent) -> bool:
    """It is declared by no module of the standard library."""
    return not event.declaration.module.startswith("std.")
