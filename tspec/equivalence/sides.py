"""The two sides of an equivalence as runs: ranks, layout, arguments of the script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tspec.equivalence.child import seed_of
from tspec.equivalence.configurations import Configuration, Settings, configurations_of
from tspec.equivalence.generator import InputRange
from tspec.equivalence.observing.orders import Sketching
from tspec.equivalence.recording import TensorName
from tspec.equivalence.refused import NotExecuted, mesh_of, refusals
from tspec.equivalence.tolerances import number
from tspec.layout.conditions import Value
from tspec.layout.sizes import Sizes, sizes_of
from tspec.resolve.program.sharding import LayoutDeclaration, matching
from tspec.resolve.program.trials import (
    DEFAULT_SAMPLES,
    Below,
    EquivalenceDeclaration,
    Generated,
    Recorded,
    Tolerance,
    Uniform,
    noises,
)

GRADIENTS_OF_ACTIVATIONS = ("input_grads", "output_grads")
"""Kinds that are gradients of a rank's own loss."""
LOCALIZED = ("inputs", "outputs", *GRADIENTS_OF_ACTIVATIONS, "param_grads")
"""Kinds that are compared if each module is judged alone."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An equivalence that can be run.

    `layout` and `sizes` are the candidate's. `name` includes the values of sweeps; `unlike` are the
    values in which the reference differs. `localize` has modules judged alone where the sides
    differ. `seed` is None where weights are not generated. `origin` is a folder with recordings of
    the reference, whose weights the candidate begins with. `perturb` is None where the noise is the
    machine epsilon of each tensor's dtype. `inputs` are generated inputs. `sketched` has runs record sketches, except for the
    tensors in `full`. With `drops` the script's own dropout is left on.
    """

    name: str
    swept: Settings
    unlike: Settings
    layout: LayoutDeclaration
    sizes: Sizes
    reference_layout: LayoutDeclaration
    reference_sizes: Sizes
    reference: tuple[str, ...]
    candidate: tuple[str, ...]
    steps: int
    seed: int | None
    origin: Path | None
    kinds: tuple[str, ...]
    tolerance: Tolerance
    samples: int
    perturb: float | None
    localize: bool
    inputs: Mapping[str, InputRange] = field(default_factory=dict)
    sketched: bool = False
    full: frozenset[TensorName] = frozenset()
    drops: bool = False

    @property
    def gives_weights(self) -> bool:
        """True if both sides are given their initial weights."""
        return self.seed is not None or self.origin is not None

    @property
    def recorded(self) -> tuple[str, ...]:
        """The kinds of tensors that runs record."""
        also = LOCALIZED if self.localize else ()
        made = {"params", "states", "gradient_norms"}
        gradients = () if made.isdisjoint(self.kinds) else ("param_grads",)
        made_of = ("outputs",) if "buffers" in self.kinds else ()
        given = ("inputs",) if self.inputs else ()
        return tuple(dict.fromkeys((*self.kinds, "losses", *gradients, *made_of, *given, *also)))

    def compares(self, name: TensorName) -> bool:
        """True for a tensor of a kind that is compared, and for each generated input."""
        return name.kind in self.kinds or (name.kind == "inputs" and name.name in self.inputs)

    @property
    def further(self) -> tuple[str, ...]:
        """Regular expressions of inputs that the layout places although they are not the first of
        their module.
        """
        said = (each.pattern for each in self.layout.placements if each.kind == "input")
        return tuple(dict.fromkeys(matching(each) for each in said if "[" in each))

    @property
    def sketching(self) -> Sketching | None:
        """The sketches that runs record instead of tensors."""
        return Sketching(self.full) if self.sketched else None

    @property
    def world(self) -> int:
        """The number of ranks of the candidate."""
        return self.layout.mesh.world


def trials_of(
    declaration: EquivalenceDeclaration, command: Sequence[str], drops: bool = False
) -> tuple[Trial, ...]:
    """The trials for `script.py ARGS`, one for each configuration. Raises NotExecuted.

    `{NAME}` in an argument stands for the side's value of a setting. With `drops` the script's own
    dropout is left on.
    """
    for each in refusals(declaration):
        raise NotExecuted(each.message)
    found = configurations_of(declaration)
    trials = tuple(replace(_trial(declaration, each, command), drops=drops) for each in found)
    references = {each.reference for each in trials}
    if trials[0].origin is not None and len(references) > 1:
        raise NotExecuted(f"one reference is recorded, and {len(references)} are asked for")
    return trials


def _trial(
    declaration: EquivalenceDeclaration, configuration: Configuration, command: Sequence[str]
) -> Trial:
    layout = declaration.layout
    assert layout is not None
    sides = (configuration.reference, configuration.candidate)
    _refuse_silent(sides, layout, command)
    reference, candidate = (replace(layout, mesh=mesh_of(layout, each)) for each in sides)
    sizes = [
        sizes_of(each, flags=frozenset(name for name in layout.flags if said.get(name) is True))
        for each, said in zip((reference, candidate), sides, strict=True)
    ]
    tolerance = declaration.within
    noise = next(noises(tolerance), None)
    assert declaration.length is not None
    return Trial(
        name=f"{declaration.module}.{declaration.name}{_named(configuration.swept)}",
        swept=configuration.swept,
        unlike=configuration.unlike,
        layout=candidate,
        sizes=sizes[1],
        reference_layout=reference,
        reference_sizes=sizes[0],
        reference=_filled(command, reference, configuration.reference),
        candidate=_filled(command, candidate, configuration.candidate),
        steps=declaration.length.count,
        seed=_seed(declaration),
        origin=_origin(declaration),
        kinds=declaration.compare,
        tolerance=tolerance,
        samples=0 if noise is None else noise.samples or DEFAULT_SAMPLES,
        perturb=None if noise is None or noise.perturb is None else number(noise.perturb),
        localize=declaration.localize,
        inputs={each.name: _numbers(each.numbers) for each in declaration.inputs},
        sketched=declaration.sketched,
    )


def _refuse_silent(
    sides: Iterable[Settings], layout: LayoutDeclaration, command: Sequence[str]
) -> None:
    """Refuse settings that neither the layout nor the script would see."""
    known = {*layout.mesh.all_axes, *layout.flags, "world_size"}
    for name in sorted({name for side in sides for name in side} - known):
        if not any(f"{{{name}}}" in argument for argument in command):
            raise NotExecuted(
                f"the script does not learn of `{name}`: write `{{{name}}}` in one of its arguments"
            )


def _filled(
    command: Sequence[str], layout: LayoutDeclaration, settings: Settings
) -> tuple[str, ...]:
    """The arguments with the values of settings."""
    flags = dict.fromkeys(layout.flags, False)
    ranks = {"world_size": layout.mesh.world}
    values = {**layout.mesh.all_axes, **flags, **ranks, **settings}
    return tuple(
        re.sub(
            r"\{(\w+)\}",
            lambda found: setting_text(values[found[1]]) if found[1] in values else found[0],
            argument,
        )
        for argument in command
    )


def settings_text(settings: Settings) -> str:
    """Settings as they are written."""
    return ", ".join(f"{name}: {setting_text(value)}" for name, value in settings.items())


def _named(swept: Settings) -> str:
    return f"[{settings_text(swept)}]" if swept else ""


def setting_text(value: Value) -> str:
    """A value as it is written, and as the script is given it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _numbers(of: Below | Uniform) -> InputRange:
    if isinstance(of, Below):
        return InputRange(0.0, float(of.limit), whole=True)
    return InputRange(of.low, of.high)


def _seed(declaration: EquivalenceDeclaration) -> int | None:
    """The seed of generated weights. If recordings keep sketches, their initial weights are
    generated again. Raises NotExecuted.
    """
    if isinstance(declaration.origin, Generated):
        return declaration.origin.seed or 0
    place = _origin(declaration)
    if place is None or not declaration.sketched:
        return None
    recorded = place / "reference.json"
    if not recorded.exists():
        raise NotExecuted(f"there is no recording of a reference in {place}")
    seed = seed_of(recorded)
    if seed is None:
        raise NotExecuted(
            f"the reference in {place} began with the script's own weights, of which `store: sketch` keeps none: "
            "record it `from generated(seed: 1)`"
        )
    return seed


def _origin(declaration: EquivalenceDeclaration) -> Path | None:
    origin = declaration.origin
    if not isinstance(origin, Recorded):
        return None
    return Path(declaration.source.path).resolve().parent / origin.path
