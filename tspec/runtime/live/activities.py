"""The activities of a training loop from which its state is derived: it took a batch, made a pass, updated.

They hold no torch and no objects: optimizers, loaders and passes over loaders are numbers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fetch:
    """A loader gave out a batch. `reading` numbers the pass; `training` is the models' mode, if known.

    `changed` says that the script has changed parameters by hand since the last backward pass began.
    """

    loader: int
    reading: int
    grad: bool
    training: bool | None = None
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Clear:
    """The gradients of these optimizers' parameters are cleared."""

    optimizers: frozenset[int]


@dataclass(frozen=True, slots=True)
class Forward:
    """An outermost module is called, with or without a graph, in training mode or not.

    `microbatch` is the number that a schedule of torch's gave it.
    """

    grad: bool
    training: bool
    microbatch: int | None = None


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward pass begins, or ended. `microbatch` is the number that a schedule of torch's gave it."""

    ended: bool = False
    microbatch: int | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """An optimizer is about to change parameters, or has done so. The calls of its closure lie in
    between.
    """

    optimizer: int
    ended: bool = False


@dataclass(frozen=True, slots=True)
class LivingOptimizers:
    """The numbers of the optimizers that exist."""

    optimizers: frozenset[int]


@dataclass(frozen=True, slots=True)
class OptimizerBuilt:
    """An optimizer was built: updates will be seen."""


@dataclass(frozen=True, slots=True)
class StepAnnotated:
    """The script says that a step begins, and perhaps its number."""

    step: int | None = None


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A framework's own loop works on a step: the first such work after an update opens it."""


@dataclass(frozen=True, slots=True)
class Microbatch:
    """A framework's schedule turns to a micro-batch, forward or backward; the first is 1."""

    number: int


@dataclass(frozen=True, slots=True)
class Stepped:
    """A framework's own optimizer has ended its step, whether it changed parameters or skipped the
    update.
    """


@dataclass(frozen=True, slots=True)
class Calibrating:
    """Statistics are taken in training mode without a graph, as of batch norms: nothing is evaluated."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """A checkpoint was loaded. `step` is the number of steps that it counts."""

    step: int


@dataclass(frozen=True, slots=True)
class Joined:
    """This rank has no more batches; it may have to wait for others that have."""


@dataclass(frozen=True, slots=True)
class Shadowed:
    """Other ranks make a forward pass; this rank only takes part in its collectives."""


Activity = (
    Fetch
    | Clear
    | Forward
    | Backward
    | Update
    | LivingOptimizers
    | OptimizerBuilt
    | StepAnnotated
    | Scheduled
    | Microbatch
    | Stepped
    | Resumed
    | Calibrating
    | Joined
    | Shadowed
)
