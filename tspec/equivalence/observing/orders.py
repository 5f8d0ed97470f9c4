"""The orders for one process of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from tspec.equivalence.cut import Cut
from tspec.equivalence.generator import InputRange
from tspec.equivalence.padding import RealSizes
from tspec.equivalence.recording import TensorName


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A relative change of floating inputs by `epsilon`, up or down by the numbers of a sample.

    Without `epsilon` it is the machine epsilon of each tensor's dtype. `once` restricts the change
    to the first call from outside in each micro-batch, since later chunks of a pipeline take the
    output of that call.
    """

    sample: int
    epsilon: float | None = None
    once: bool = False


@dataclass(frozen=True, slots=True)
class Sketching:
    """Sketches are recorded instead of tensors. Losses and the tensors in `full` are recorded whole."""

    full: frozenset[TensorName] = frozenset()


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders for a process of a run.

    `seed` is None if weights are the script's own. `cuts` has the reference's name of each
    parameter, this rank's shard of it, and the mean of each vector; None on the reference, which
    has whole tensors. `rewrites` has the values that replace inputs, outputs and their gradients
    after they were recorded, and parameters before the first step. `further` are regular
    expressions of the names of inputs that are recorded though they are not the first of their
    module. `inputs` are inputs that are generated; `input_cuts` has this rank's shard of each of
    them, by the call; None on the reference. `places` has the reference's name of this rank's
    tensors that are sketched or replaced, and which of its elements they are; None on the
    reference, which has all of each. `padded` are the real sizes of tensors that the reference pads. With `drops` the script's
    own dropout is left on.
    """

    steps: int
    kinds: tuple[str, ...]
    seed: int | None = None
    cuts: Mapping[str, tuple[str, Cut, float]] | None = None
    perturbation: Perturbation | None = None
    rewrites: Mapping[TensorName, Tensor] = field(default_factory=dict)
    sketching: Sketching | None = None
    further: tuple[str, ...] = ()
    inputs: Mapping[str, InputRange] = field(default_factory=dict)
    input_cuts: Mapping[TensorName, Cut] | None = None
    places: Mapping[TensorName, tuple[str, Cut]] | None = None
    padded: tuple[RealSizes, ...] = ()
    drops: bool = False
