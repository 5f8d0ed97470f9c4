"""Claims for frameworks that keep main copies of gradients and parameters, as Megatron does.

Their update contains that of torch's optimizer, which trains the main copies and is called once for
each kind of parameters. Flags of a parameter say whether it is a shard. A run without shards proves
nothing about one with shards, so claims name these flags, whatever the runs hold.
"""

from __future__ import annotations

from tspec.infer.heads import both
from tspec.infer.survey import SeenKind, Survey

MAIN_GRAD = "main_grad"
UPDATE = "update"
REDUCTION = "finalize_grads"

UNCOMPARED = ("grad", "shard")
"""Fields without a comparison of their own if main gradients are kept: `grad` is then a second name
of them or empty, and `shard` is a part of `data`.
"""

EXPERTS_AXIS = "expert_dp"
"""The ranks that hold copies of the same experts."""


def are_kept(survey: Survey) -> bool:
    """Main gradients were recorded."""
    kind = survey.kind("parameter")
    return kind is not None and MAIN_GRAD in kind.fields


def update_of(survey: Survey) -> str:
    """The event that holds all that changes the model in a step."""
    return UPDATE if _has(survey, UPDATE) else "optimizer.step"


def compared(survey: Survey, kind: SeenKind, field: str) -> bool:
    """A tensor of a kind that ranks are compared by."""
    return not (are_kept(survey) and kind.name == "parameter" and field in UNCOMPARED)


def window(survey: Survey, field: str) -> str | None:
    """The window in which a parameter's tensor is the same on its replicas. None if the framework
    has no events of its own.

    A main gradient is the same from its reduction on. The result of an update may still have to be
    gathered.
    """
    if field == MAIN_GRAD and _has(survey, REDUCTION):
        return f"after {REDUCTION}"
    return f"before {UPDATE}" if _has(survey, UPDATE) else None


def _has(survey: Survey, event: str) -> bool:
    """The framework's own event occurred."""
    return are_kept(survey) and survey.event(event) is not None


def guard(survey: Survey, axis: str, optional: bool) -> str | None:
    """The condition that ranks on an axis hold copies of a parameter's tensor, as far as one run cannot show.

    `optional`: a main gradient or a main copy, and no values of the model. These are gathered from all shards; the
    optimizer's own copies have names that are each rank's own.
    """
    parameter = survey.kind("parameter")
    if parameter is None or not are_kept(survey):
        return None
    if not optional:
        return "p in models.parameters"
    experts = "p.expert" if axis == EXPERTS_AXIS else "not p.expert"
    return both(whole(parameter), experts if "expert" in parameter.fields else None)


def whole(kind: SeenKind) -> str | None:
    """The condition that a parameter is not cut over its replicas; None where nothing says so."""
    sharded = kind.name == "parameter" and "sharded" in kind.fields
    return "not p.sharded" if sharded else None
