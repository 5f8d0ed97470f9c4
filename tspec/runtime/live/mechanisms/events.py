"""The events of the spec: every callable that one names is watched."""

from __future__ import annotations

from typing import Any

from tspec.runtime.live.entities.optimizers import clears_groups, holds_groups
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.instrument.dotted import spellings
from tspec.runtime.live.mechanisms.clears import CLEAR
from tspec.runtime.live.mechanisms.fetches import NEXT
from tspec.runtime.live.mechanisms.forward import MODULE_CALL, counts_as_forward
from tspec.runtime.live.mechanisms.updates import STEP
from tspec.runtime.live.models import ModelRegistry
from tspec.runtime.live.module_tree import unwrapped
from tspec.runtime.live.watch import EventSpec
from tspec.runtime.live.watched import Guard, Role

_GUARDS: dict[str, Guard] = {
    MODULE_CALL: counts_as_forward,
    STEP: holds_groups,
    CLEAR: clears_groups,
}
"""Conditions on the instance whose calls count."""


def install(job: FollowedJob) -> None:
    """Watch the callables that the spec names.

    Families come last, since they leave out callables that an event names.
    """
    named = {path for event in job.spec.events for path in event.callables}
    for event in sorted(job.spec.events, key=lambda each: each.family):
        for path in event.callables:
            if path == NEXT:
                continue
            role = Role(
                event.name,
                event=event,
                path=path,
                guard=_guard(event, path, job.state.models),
                once=_is_anonymous(event),
            )
            job.functions.watch_path(
                role, leaving_out=frozenset(named) if event.family else frozenset()
            )


def _guard(event: EventSpec, path: str, models: ModelRegistry) -> Guard | None:
    """A function that decides from an instance whether its calls count; None if all do."""
    guard = _GUARDS.get(path)
    return _of_receivers(event.receivers, models, guard) if event.receivers else guard


def _of_receivers(classes: tuple[str, ...], models: ModelRegistry, guard: Guard | None) -> Guard:
    """Calls count on modules of some classes, without wrappers. Each class is checked once for each
    set of models.
    """
    wanted = frozenset(classes)
    known: dict[type, bool] = {}
    version = -1

    def counts(module: Any) -> bool:
        nonlocal version
        if models.version != version:
            version = models.version
            known.clear()
        found = known.get(type(module))
        if found is None:
            held = unwrapped(module)
            found = not wanted.isdisjoint(spellings(type(held)).split(" "))
            if held is module:
                known[type(module)] = found
        return found and (guard is None or guard(module))

    return counts


def _is_anonymous(event: EventSpec) -> bool:
    """True if no field of the event names the subject of its call. An inner call then adds nothing
    to the outer one.
    """
    return not any(field.type[0] == "entity" for field in event.fields)
