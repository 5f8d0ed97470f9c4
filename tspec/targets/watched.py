"""The events, entities and context that a job must watch for the hooks of a plan."""

from __future__ import annotations

from dataclasses import replace

from tspec.plan.model import Plan
from tspec.record.watch import entity_spec, event_specs
from tspec.resolve.program.rules import Vocabulary
from tspec.runtime.live.watch import EntitySpec, EventSpec, FieldSpec, GroupSpec, WatchSpec


def watched(vocabulary: Vocabulary, plan: Plan) -> WatchSpec:
    """Everything that a plan needs from the job: its events and the fields of events and entities that rules read, and
    all groups and context values of the vocabulary.
    """
    events = [vocabulary.event(name) for name in plan.kept]
    read = {(one.kind, one.name) for rule in plan.rules for one in rule.reads.columns}
    outermost = frozenset(plan.outermost)
    return WatchSpec(
        tuple(
            replace(
                spec,
                fields=_read(spec, plan),
                outermost=spec.name in outermost,
                receivers=plan.receivers.get(spec.name, ()),
            )
            for event in events
            if event is not None
            for spec in event_specs(event)
        ),
        tuple(
            EntitySpec(
                spec.kind, tuple(each for each in spec.fields if (spec.kind, each.name) in read)
            )
            for spec in map(entity_spec, vocabulary.entities)
        ),
        tuple(GroupSpec(group.name, group.callables) for group in vocabulary.groups),
        tuple(name.name for name in vocabulary.context),
    )


SAID = ("group", "tensor")
"""The fields by which a message names a collective that failed."""


def _read(spec: EventSpec, plan: Plan) -> tuple[FieldSpec, ...]:
    """The fields of an event that rules read, that calls are told apart by, or that messages name."""
    names = {
        *SAID,
        *plan.kept[spec.name],
        *(name for one in plan.patterns if spec.name in one.events for name in one.fields),
    }
    return tuple(each for each in spec.fields if each.name in names)
