"""Equivalences and replays as values without syntax."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tspec.resolve.program.expressions import Constant, Expr
from tspec.resolve.program.sharding import LayoutDeclaration
from tspec.source import NOWHERE, Source, Span


@dataclass(frozen=True, slots=True)
class Length:
    """The length of a run."""

    count: int
    unit: Literal["step", "epoch"]


# --- equivalence --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of one side, and its value."""

    name: str
    value: Constant


@dataclass(frozen=True, slots=True)
class Sweep:
    """A setting that takes each of some values."""

    name: str
    values: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class Generated:
    """Weights are generated, for `models` models if given."""

    seed: int | None = None
    models: int | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The weights of a recorded reference. The path is relative to the file."""

    path: str


@dataclass(frozen=True, slots=True)
class Below:
    """Whole numbers from 0 on, smaller than `limit`, such as tokens or classes."""

    limit: int


@dataclass(frozen=True, slots=True)
class Uniform:
    """Floating numbers from `low` on, smaller than `high`, all equally likely."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class GeneratedInput:
    """An input of a module, or a target of a loss, by its canonical name, and its numbers."""

    name: str
    numbers: Below | Uniform


@dataclass(frozen=True, slots=True)
class Number:
    """A tolerance that is a number."""

    value: float


@dataclass(frozen=True, slots=True)
class Ulp:
    """The relative distance of neighbouring numbers of a dtype near 1: machine epsilon."""

    dtype: str


@dataclass(frozen=True, slots=True)
class Relative:
    """A tolerance relative to the reference: `rtol(x)`."""

    value: Tolerance


@dataclass(frozen=True, slots=True)
class Absolute:
    """A tolerance in the unit of the tensor: `atol(x)`."""

    value: Tolerance


@dataclass(frozen=True, slots=True)
class Noise:
    """The change of the reference when its inputs are perturbed (TTrace, section 4)."""

    perturb: Tolerance | None = None
    samples: int | None = None
    floor: Tolerance | None = None


@dataclass(frozen=True, slots=True)
class Combined:
    """Two tolerances, added, multiplied or divided."""

    op: Literal["+", "*", "/"]
    left: Tolerance
    right: Tolerance


Tolerance = Number | Ulp | Relative | Absolute | Noise | Combined

DEFAULT_SAMPLES = 3
"""The number of perturbed runs of the reference if `noise` gives none."""


def noises(tolerance: Tolerance) -> Iterator[Noise]:
    """Each `noise` in a tolerance."""
    match tolerance:
        case Noise():
            yield tolerance
        case Relative(value) | Absolute(value):
            yield from noises(value)
        case Combined(_, left, right):
            yield from noises(left)
            yield from noises(right)


@dataclass(frozen=True, slots=True)
class EquivalenceSpans:
    """The spans of the clauses of an equivalence; that of its name for a clause that is not written."""

    reference: Span = NOWHERE
    candidate: Span = NOWHERE
    length: Span = NOWHERE
    origin: Span = NOWHERE
    compare: Span = NOWHERE
    within: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class EquivalenceDeclaration:
    """Runs of a training step that must agree.

    `reference` and `candidate` are None if all runs come from sweeps. Conditions read settings as
    names of the context; conditions of `equal_when` read `reference.NAME` and `candidate.NAME`.
    """

    name: str
    module: str
    layout: LayoutDeclaration | None
    reference: tuple[Setting, ...] | None
    candidate: tuple[Setting, ...] | None
    sweeps: tuple[Sweep, ...]
    require: tuple[Expr, ...]
    equal_when: tuple[Expr, ...]
    cover: Literal["all", "pairs", "triples"] | None
    length: Length | None
    origin: Generated | Recorded | None
    inputs: tuple[GeneratedInput, ...]
    """Inputs that are generated. The script provides the others."""
    compare: tuple[str, ...]
    within: Tolerance
    sketched: bool
    """Recordings keep a sketch of each tensor, not its elements."""
    localize: bool
    source: Source = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)
    """The span of the equivalence's name."""
    spans: EquivalenceSpans = field(default=EquivalenceSpans(), compare=False, repr=False)


# --- replay -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Same:
    """The straight run and the resumed one have the same bits of a kind of state."""

    kind: str


@dataclass(frozen=True, slots=True)
class ReplayDeclaration:
    """A run that must give the same results after it is stopped and resumed.

    `resume_at` is the step after which it is stopped. `claims` are conditions on the resumed run,
    or comparisons with the uninterrupted one.
    """

    name: str
    module: str
    fix: tuple[str, ...]
    save: tuple[str, ...]
    length: Length | None
    resume_at: int | None
    claims: tuple[Expr | Same, ...]
    source: Source = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)
    """The span of the replay's name."""
