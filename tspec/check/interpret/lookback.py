"""Moves a frame for `old`, `previous`, `first` and `over`.


Page: "Values", the lines on `over`, `previous` and `first`.
"""

from __future__ import annotations

from dataclasses import replace

from tspec.check.interpret.frames import EvaluationContext, LocalInstance
from tspec.resolve.program.queries import names_call, reads_entities_only
from tspec.resolve.program.rules import Duration, Expr


def old(frame: EvaluationContext) -> EvaluationContext:
    """The same frame at the window's start."""
    return replace(frame, start=True)


def previous(frame: EvaluationContext) -> EvaluationContext | None:
    """The same frame at the instance before, on this rank, of the same ranks and subjects."""
    if frame.instance is None:
        return None
    instances = frame.instance.history.up_to(frame.local.line.rank, frame.instance)
    return frame.at_instance(instances[-2]) if len(instances) > 1 else None


def first(expr: Expr, frame: EvaluationContext) -> EvaluationContext | None:
    """Fields as first sampled, if only entities are read; else the first instance on this rank."""
    if reads_entities_only(expr):
        return replace(frame, first=True)
    if frame.instance is None:
        return None
    rank, history = frame.local.line.rank, frame.instance.history
    if names_call(expr):
        return frame.at_instance(history.first[rank])
    return frame.at_instance(history.up_to(rank, frame.instance)[0])


def over(frame: EvaluationContext, duration: Duration) -> tuple[list[EvaluationContext], bool]:
    """The frames of this and the earlier instances within a duration, and if they are complete."""
    instance = frame.instance
    if instance is None:
        return [], False
    rank = frame.local.line.rank
    there = [
        (each, unit_index(each.locals[rank], each.key.at, duration.unit))
        for each in instance.history.up_to(rank, instance)
        if rank in each.locals
    ]
    now = unit_index(frame.local, instance.key.at, duration.unit)
    every = instance.history.every
    stride = every.count if every is not None and every.unit == duration.unit else 1
    moved = (frame.at_instance(e) for e, index in there if now - duration.count < index <= now)
    inside = [each for each in moved if each is not None]
    return inside, there[0][1] <= now - duration.count + stride


def unit_index(local: LocalInstance, at: tuple[int, int], unit: str) -> int:
    """The step, epoch or microbatch (counted through the run) of an instance."""
    window = local.window
    if unit == "microbatch":
        return local.line.microbatches(window.open.seq)
    if unit == "epoch":
        return window.open.context.epoch
    return at[0] if window.span in (None, "step", "microbatch") else window.open.context.step
