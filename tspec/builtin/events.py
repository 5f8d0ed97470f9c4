"""The roles of the shipped events in a training step.

An event that is not listed, such as one that a user declared, has the roles of `OTHER`. The type
checker, the plan, the hooks, the recorder, the reports, `tspec lint` and `tspec infer` read this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Before = Literal[
    "nothing", "first calls", "everything", "update", "gradients", "forward", "backward"
]
"""The state that the recorder samples when a call begins; `tspec.record.instants` explains each.

`first calls`: everything, at the first few calls of a step.
"""

After = Literal[Before, "batches", "schedule"]
"""The state that it samples when a call has returned."""

FORWARD = 2
"""The place of a forward pass in a step."""
AFTER_STEP = 8
"""The place after all events of a step."""


@dataclass(frozen=True, slots=True)
class EventRoles:
    """The roles of one event."""

    name: str
    place: int = FORWARD
    """Place in the order in which events of a step can cause each other.

    0 schedule, 1 load, 2 forward, 3 dropout, 4 backward, 5 clip, 6 update, 7 save.
    """
    updates: bool = False
    """Its calls change the trained state; `skip` leaves them out."""
    follows_update: bool = False
    """Its calls follow the update of their step, so nothing is left to skip."""
    in_every_step: bool = False
    """Every step of training has a call of it, the first one too."""
    brings_batch: bool = False
    """Its calls return a batch."""
    changes_state: bool = False
    """Its purpose is to change state. An effect of another event on state is a coincidence."""
    paces_ranks: bool = False
    """Cooperating ranks call it equally often."""
    is_seldom: bool = False
    """Many steps may pass without a call of it."""
    in_loop: Literal["no", "once", "often"] = "no"
    """The training loop calls it: once in a step, or as often as the program accumulates or reduces."""
    before: Before = "first calls"
    """The state sampled when a call begins."""
    after: After = "first calls"
    """The state sampled when a call has returned."""
    inner: bool = False
    """A step has many calls of it: the recorder reads their tensors in some steps only."""
    tensor_names: bool = False
    """The recorder stores the names of its tensors."""


def _light(
    name: str,
    *,
    inner: bool = False,
    tensor_names: bool = False,
    place: int = FORWARD,
    in_loop: Literal["no", "often"] = "no",
) -> EventRoles:
    """An event that changes no state that lasts, or is called too often to sample it."""
    return EventRoles(
        name, place, before="nothing", after="nothing", inner=inner, tensor_names=tensor_names,
        in_loop=in_loop,
    )  # fmt: skip


_ROWS = (
    EventRoles(
        "optimizer.step", 6, updates=True, in_every_step=True, changes_state=True, paces_ranks=True,
        in_loop="once", before="update", after="update",
    ),
    EventRoles("update", 6, updates=True, in_loop="once", before="update", after="update"),
    EventRoles(
        "scheduler.step", 0, follows_update=True, changes_state=True, paces_ranks=True, is_seldom=True,
        in_loop="once", before="nothing", after="schedule",
    ),
    EventRoles(
        "backward", 4, in_every_step=True, changes_state=True, paces_ranks=True, in_loop="often",
        before="backward", after="backward",
    ),
    EventRoles(
        "optimizer.zero_grad", in_every_step=True, changes_state=True, in_loop="once",
        before="nothing", after="gradients",
    ),
    EventRoles("load_state_dict", 1, changes_state=True, after="everything"),
    EventRoles(
        "fetch", in_every_step=True, brings_batch=True, paces_ranks=True, in_loop="often",
        before="nothing", after="batches",
    ),
    EventRoles("clip", 5, in_loop="once", before="gradients", after="gradients"),
    _light("clip_by_norm", place=5),
    _light("scaling"),
    EventRoles("unscaling", 5, before="gradients", after="gradients"),
    EventRoles("save", 7, follows_update=True, before="everything", after="nothing"),
    EventRoles("forward", before="forward", after="forward", inner=True),
    _light("wrapper.forward", inner=True, in_loop="often"),
    _light("matmul", inner=True),
    _light("dropout", inner=True, place=3),
    _light("attention", inner=True),
    _light("embedding", inner=True),
    _light("spectral_norm", inner=True),
    _light("forward_step", inner=True),
    _light("training_step"),
    _light("capacity", inner=True),
    _light("route", inner=True),
    _light("dispatch", inner=True),
    _light("process", inner=True),
    _light("cross_entropy"),
    _light("decision"),
    _light("drawing"),
    _light("drawn", inner=True),
    _light("recurrent", inner=True),
    _light("seeding"),
    _light("forking"),
    _light("averaged"),
    _light("term"),
    _light("total"),
    EventRoles(
        "collective", paces_ranks=True, in_loop="often",
        before="nothing", after="nothing", tensor_names=True,
    ),
    EventRoles("finalize_grads", in_loop="often"),
    EventRoles("finish_reductions", before="nothing", after="gradients"),
    _light("scale_loss"),
    _light("all_reduce", tensor_names=True),
    _light("replicating"),
    _light("all_to_all"),
    _light("receive"),
    _light("compare_checkpoint"),
)  # fmt: skip

EVENTS: Mapping[str, EventRoles] = {row.name: row for row in _ROWS}
"""Name -> roles."""

RETURNED = "returned"
"""A field of any event that declares it: true once a call has returned, not recorded before."""

OF_THE_RETURN = frozenset({"output", "result", RETURNED})
"""Fields of any event that are known when a call returns, and have no source in their declaration."""

OTHER = EventRoles("")
"""The roles of an event that is not listed: it may change anything."""

LIGHT = _light("")
"""The roles of a bare callable."""

UPDATES = frozenset(row.name for row in _ROWS if row.updates)
"""The events that change the trained state."""

FETCHES = frozenset(row.name for row in _ROWS if row.brings_batch)
"""The events that return a batch."""


def roles_of(event: str) -> EventRoles:
    """The roles of an event."""
    return EVENTS.get(event, OTHER)
