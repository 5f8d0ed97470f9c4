"""The state of a training loop: step, epoch, microbatch and phase, derived from its activities.

A pure state machine: `advance(place, activity)` gives the next place. It knows no torch and no
objects; optimizers, loaders and passes over loaders are numbers. It follows the language's page on
steps: a step opens with the first training activity after the last update of the turn before. Where
a loader is visible, a training batch always begins a new turn.
"""

from __future__ import annotations

from math import ceil
from typing import Literal, NamedTuple

from tspec.runtime.live.activities import (
    Activity,
    Backward,
    Calibrating,
    Clear,
    Fetch,
    Forward,
    Joined,
    LivingOptimizers,
    Microbatch,
    OptimizerBuilt,
    Resumed,
    Scheduled,
    Shadowed,
    StepAnnotated,
    Stepped,
    Update,
)
from tspec.values import LoopSpan


class LoopState(NamedTuple):
    """The position of the loop, and the state from which the next position is derived.

    A tuple, since it is replaced many times in a step: `dataclasses.replace` takes ten times as long.
    """

    step: int = 0
    epoch: int = 0
    microbatch: int = 0
    phase: Literal["train", "eval"] = "train"

    turn: int = 0
    """The number of steps opened in this process. `step` also counts those before a resume."""
    passes: int = 0
    """The number of epochs opened in this process."""
    updated: frozenset[int] = frozenset()
    """Optimizers that have updated in this turn."""
    expected: frozenset[int] | None = None
    """Optimizers that updated in the previous turn; in the first turn, those that existed at its
    first update, or None.
    """
    cleared: frozenset[int] = frozenset()
    """Optimizers whose gradients were cleared in this turn."""
    ever: frozenset[int] = frozenset()
    """Optimizers that have ever updated."""
    beside: frozenset[tuple[int, int]] = frozenset()
    """Pairs of optimizers: the second has updated since the first update of the first. An optimizer
    of an earlier training has not.
    """
    alive: frozenset[int] = frozenset()
    latecomers: frozenset[int] = frozenset()
    """Optimizers that were built in this turn, after an update."""
    built: bool = False
    """An optimizer was built, though it may not have updated yet."""
    ever_updated: bool = False
    updating: frozenset[int] = frozenset()
    """Optimizers whose update is under way, one perhaps within another's: a closure's passes belong to it."""
    fed: bool = False
    """A training batch was taken in this turn, so that the next one divides it from the next turn."""
    worked: bool = False
    """A training pass or an update was made in this turn."""
    backward_in_turn: bool = False
    backward_in_microbatch: bool = False
    backward_since_update: bool = False
    said: bool = False
    scheduled: bool = False
    """A framework tells of steps: nothing else opens any."""
    numbered: bool = False
    """A framework's schedule tells of micro-batches: nothing else opens any. A loop of the script's own may call its passes without one."""
    over: bool = False
    """The framework is done with the step."""
    joined: bool = False
    """The step is over, and none has opened since: the rank has joined."""
    shadowed: int = 0
    """The number of other ranks' passes in which the rank took part since it joined."""
    longest: int = 1
    """The most micro-batches of a step that is over."""
    by_loader: bool = False
    """Epochs are passes over a loader, not the run."""
    counted: frozenset[int] = frozenset()
    """Passes that are epochs."""
    feeding: frozenset[int] = frozenset()
    """Loaders whose batches were trained on."""
    feeding_now: frozenset[int] = frozenset()
    """Those of the latest backward pass that was made from new batches."""
    taken: frozenset[tuple[int, int]] = frozenset()
    """Loaders and passes of the batches that the next backward pass is made from."""
    looked: bool | None = None
    """All forward passes since the latest batch were made without a graph; None before the first."""
    pending: bool = False
    """Gradients were cleared after all updates of this turn: the next training pass opens a step."""
    forward_mode: bool = True
    """The mode of the latest outermost forward pass that recorded a graph."""
    trains_in_eval_mode: bool = False


def openings(before: LoopState, after: LoopState) -> tuple[tuple[LoopSpan, int], ...]:
    """The spans that open between two places, the longest first: one instant for all.

    Step 0 is none: only the step before it closes.
    """
    opened: list[tuple[LoopSpan, int]] = []
    if after.joined and not before.joined:
        return (("step", 0),)
    if after.passes != before.passes:
        opened.append(("epoch", after.epoch))
    if after.turn != before.turn:
        opened.append(("step", after.step))
    if after.turn != before.turn or after.microbatch != before.microbatch:
        opened.append(("microbatch", after.microbatch))
    return tuple(opened)


def advance(place: LoopState, activity: Activity) -> LoopState:
    """The place after an activity."""
    match activity:
        case Fetch():
            return _fetch(place, activity)
        case Clear(optimizers):
            return _clear(place, optimizers)
        case Forward(grad, training, microbatch):
            return _forward(place, grad, training, microbatch)
        case Backward(ended, microbatch):
            return _backward_end(place) if ended else _backward_begin(place, microbatch)
        case Update(optimizer, ended):
            if ended:
                return place._replace(updating=place.updating - {optimizer})
            return _update(place, optimizer)
        case LivingOptimizers(optimizers):
            return _living(place, optimizers)
        case OptimizerBuilt():
            return place._replace(built=True)
        case StepAnnotated(step):
            number = place.step + 1 if step is None else step
            return _open(place._replace(said=True), number)
        case Scheduled():
            return _scheduled(place)
        case Microbatch(number):
            return place._replace(microbatch=number, scheduled=True, numbered=True)
        case Stepped():
            return place._replace(over=True)
        case Calibrating():
            return place._replace(phase="train")
        case Resumed(step):
            return place if place.ever_updated else place._replace(step=step)
        case Joined():
            return place._replace(joined=place.turn > 0, shadowed=0)
        case Shadowed():
            return _shadow(place)


def _open(place: LoopState, number: int | None = None) -> LoopState:
    """Open a step, and the epoch that lasts for the run where no loader is seen."""
    run = place.passes == 0
    return place._replace(
        step=place.step + 1 if number is None else number,
        turn=place.turn + 1,
        microbatch=1,
        passes=1 if run else place.passes,
        epoch=place.epoch + 1 if run else place.epoch,
        expected=place.updated or place.expected,
        updated=frozenset(),
        cleared=frozenset(),
        latecomers=frozenset(),
        joined=False,
        longest=max(place.longest, place.microbatch),
        fed=False,
        worked=False,
        backward_in_turn=False,
        backward_in_microbatch=False,
        backward_since_update=False,
        pending=False,
        over=False,
    )


def _shadow(place: LoopState) -> LoopState:
    """The step that the other ranks have reached.

    They make as many passes in each step as this rank in its longest step. Their first passes are
    those that this rank's last step lacked.
    """
    longest = max(place.longest, place.microbatch)
    made = place.microbatch + place.shadowed
    further = ceil((made + 1) / longest) - ceil(made / longest)
    return place._replace(step=place.step + further, shadowed=place.shadowed + 1)


def _opened(place: LoopState, due: bool) -> LoopState:
    announced = place.said or place.scheduled
    if (place.turn == 0 or place.joined or due) and not announced and not place.updating:
        return _open(place)
    return place


def _living(place: LoopState, optimizers: frozenset[int]) -> LoopState:
    """Forget optimizers that no longer exist: a loop may build an optimizer in each step."""
    if optimizers == place.alive:
        return place
    late = place.latecomers | (optimizers - place.alive) if place.updated else frozenset()
    return place._replace(
        alive=optimizers,
        latecomers=late & optimizers,
        ever=place.ever & optimizers,
        beside=frozenset(pair for pair in place.beside if optimizers.issuperset(pair)),
    )


def _scheduled(place: LoopState) -> LoopState:
    """A step that was open when the framework's loop was first seen is its own, if nothing was updated in it."""
    if place.said:
        return place
    due = place.over if place.scheduled else bool(place.updated)
    place = place._replace(phase="train", scheduled=True)
    return _open(place) if place.turn == 0 or due else place


def _all_updated(place: LoopState) -> bool:
    """True if every expected optimizer has updated, which may end the turn."""
    return place.expected is not None and bool(place.updated) and place.expected <= place.updated


def _begins_anew(place: LoopState, optimizers: frozenset[int]) -> bool:
    """True if some optimizers were built after all updates of a turn, and have made none: another
    training begins. In the first turn a loop may build an optimizer when it first needs it.
    """
    late = place.latecomers & (optimizers - place.updated)
    return bool(late) and place.turn > 1 and _all_updated(place)


def sees_optimizer(place: LoopState) -> bool:
    """An optimizer was seen. Where none is, a script updates its parameters by hand."""
    return place.built or place.ever_updated or place.scheduled or bool(place.alive)


def is_empty(place: LoopState) -> bool:
    """The step that is open has only batches, evaluations or clears, after a step that trained.

    A step that the script or a framework announced is not empty.
    """
    announced = place.said or place.scheduled
    return place.turn > 1 and not (place.worked or place.joined or announced)


def lacks_updates(place: LoopState) -> bool:
    """An optimizer was built and has made no update so far."""
    built = place.built or bool(place.alive)
    return built and not (place.ever_updated or place.scheduled)


def has_trained(place: LoopState) -> bool:
    """A backward pass was made."""
    return place.backward_in_turn or place.turn > 1


def unseen_updates(place: LoopState) -> str | None:
    """What a person has to know of a run that trained and in which no update was seen."""
    untested = "what rules say of updates is not tested"
    if not has_trained(place):
        return None
    if not sees_optimizer(place):
        return f"no optimizer was seen: a step is one backward pass, and {untested}"
    if not lacks_updates(place):
        return None
    steps = "all passes count as one step, and " if place.turn == 1 else ""
    return f"an optimizer was built and made no update: {steps}{untested}"


def _by_hand(place: LoopState) -> bool:
    """No update is visible, so a backward pass stands for the update."""
    return not sees_optimizer(place) and place.backward_in_turn


def _next_microbatch(place: LoopState, turn: int) -> LoopState:
    if place.turn == turn and not place.numbered and place.backward_in_microbatch:
        return place._replace(microbatch=place.microbatch + 1, backward_in_microbatch=False)
    return place


def _fetch(place: LoopState, fetch: Fetch) -> LoopState:
    known = fetch.reading in place.counted or fetch.loader in place.feeding
    training = fetch.grad and (known or fetch.training is not False)
    place = place._replace(taken=frozenset() if place.looked else place.taken, looked=None)
    # Once a loader is known to feed the training, evaluation mode tells another one from it.
    if training or (fetch.grad and (place.trains_in_eval_mode or not place.feeding)):
        place = place._replace(taken=place.taken | {(fetch.loader, fetch.reading)})
    if not training:
        return place._replace(phase="eval")
    turn = place.turn
    place = _count(place._replace(phase="train"), fetch.reading)
    by_hand = _by_hand(place) or (fetch.changed and place.backward_in_turn)
    place = _opened(place, bool(place.updated) or by_hand)
    return _next_microbatch(place, turn)._replace(fed=True)


def _count(place: LoopState, reading: int) -> LoopState:
    """Count a pass over a training loader as an epoch, once."""
    if reading in place.counted:
        return place
    first_of_loader = not place.by_loader and place.passes == 1
    place = place._replace(by_loader=True, counted=place.counted | {reading})
    if first_of_loader:
        return place
    return place._replace(epoch=place.epoch + 1, passes=place.passes + 1)


def _clear(place: LoopState, optimizers: frozenset[int]) -> LoopState:
    """The place after clearing gradients.

    Without a loader, a loop that clears before its passes opens a step here; one that clears after
    the update does not. The two differ in whether the turn has already had its clear.

    In a turn that took a batch of a loader, an evaluation may follow, which belongs to the step
    that ends: the next batch or training pass opens the step.
    """
    again = bool(optimizers & place.updated & place.cleared) and _all_updated(place)
    if place.by_loader and place.fed and not place.updating:
        over = _all_updated(place) and not optimizers.isdisjoint(place.updated)
        over = over and all(b in place.updated for a, b in place.beside if a in optimizers)
        place = place._replace(pending=place.pending or over or again)
        again = False
    # Another training begins, with an optimizer of its own. Old ones may hold its parameters too.
    other = bool(optimizers) and optimizers.isdisjoint(place.ever) and _all_updated(place)
    other = other or not place.latecomers.isdisjoint(optimizers - place.updated)
    due = again or _begins_anew(place, optimizers)
    due = due or (not place.fed and (other or _by_hand(place)))
    place = _opened(place._replace(phase="train"), due)
    return place._replace(cleared=place.cleared | optimizers)


def _forward(place: LoopState, grad: bool, training: bool, microbatch: int | None) -> LoopState:
    if not grad:
        return place._replace(phase="eval", looked=place.looked is not False)
    place = place._replace(forward_mode=training, looked=False)
    if not training and not place.trains_in_eval_mode:
        return place._replace(phase="eval")
    turn = place.turn
    due = place.pending or (not place.fed and (_all_updated(place) or _by_hand(place)))
    due = due or _begins_anew(place, place.latecomers)
    place = _opened(place._replace(phase="train"), due)._replace(worked=True)
    if microbatch is not None:
        return place._replace(microbatch=microbatch)
    return _next_microbatch(place, turn)


def _backward_begin(place: LoopState, microbatch: int | None) -> LoopState:
    place = _opened(place._replace(phase="train"), place.pending)._replace(worked=True)
    if microbatch is not None:
        place = place._replace(microbatch=microbatch)
    for _, reading in sorted(place.taken):
        place = _count(place, reading)
    now = frozenset(loader for loader, _ in place.taken)
    place = place._replace(
        feeding=place.feeding | now,
        feeding_now=now or place.feeding_now,
        taken=frozenset(),
    )
    if not place.forward_mode:
        place = place._replace(trains_in_eval_mode=True)
    return place


def _backward_end(place: LoopState) -> LoopState:
    return place._replace(
        backward_in_turn=True, backward_in_microbatch=True, backward_since_update=True
    )


def _update(place: LoopState, optimizer: int) -> LoopState:
    again = optimizer in place.updated and place.backward_since_update and not place.fed
    if not place.joined:  # a sharded optimizer of a rank that has joined helps the others' update
        place = _opened(place._replace(phase="train"), again)
    expected = place.expected
    if expected is None:
        # The first turn does not wait for an optimizer that is built after its first update.
        expected = place.alive | {optimizer}
    elif not place.updated and optimizer not in expected:
        expected = frozenset({optimizer})
    return place._replace(
        updated=place.updated | {optimizer},
        ever=place.ever | {optimizer},
        beside=place.beside | {(each, optimizer) for each in place.ever},
        updating=place.updating | {optimizer},
        worked=True,
        expected=expected,
        ever_updated=True,
        backward_since_update=False,
    )
