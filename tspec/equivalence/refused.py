"""What of an equivalence cannot be run, as its declaration says it, with the place in the spec."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from tspec.equivalence.configurations import Settings, configurations_of
from tspec.resolve.program.sharding import Axes, LayoutDeclaration, MeshDeclaration
from tspec.resolve.program.trials import (
    EquivalenceDeclaration,
    Generated,
    Recorded,
    noises,
)
from tspec.source import Span

COMPARED = (
    *("inputs", "input_grads", "outputs", "output_grads"),
    *("param_grads", "gradient_norms", "params", "buffers", "states", "losses"),
)
"""Kinds of tensors that are recorded."""


class NotExecuted(Exception):
    """Something that an equivalence says and that cannot be run. The message names it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that a declaration says and that cannot be run, at its place in the spec."""

    message: str
    span: Span


def refusals(declaration: EquivalenceDeclaration) -> Iterator[Refusal]:
    """What cannot be run, whatever the command is. Without any of these, sides can be made."""
    found = list(_unknown(declaration))
    yield from found
    if not found:
        yield from _of_configurations(declaration)


def _unknown(declaration: EquivalenceDeclaration) -> Iterator[Refusal]:
    """Clauses that the language has and that are not run."""
    spans, origin = declaration.spans, declaration.origin
    if isinstance(origin, Generated) and origin.models:
        yield Refusal("`models:` cannot be run yet", spans.origin)
    unknown = [kind for kind in declaration.compare if kind not in COMPARED]
    if unknown:
        yield Refusal(f"`compare {', '.join(unknown)}` cannot be run yet", spans.compare)
    if declaration.length and declaration.length.unit == "epoch":
        yield Refusal("a run of epochs cannot be run yet", spans.length)
    if isinstance(origin, Recorded) and declaration.sketched and declaration.localize:
        says = (
            "modules are judged alone with the reference's tensors, of which a recording with `store: sketch` "
            "keeps none: leave `localize` out, or begin `from generated(seed: 1)`"
        )
        yield Refusal(says, spans.origin)
    if declaration.layout is None:
        yield Refusal("it has no `layout NAME`", declaration.span)
    if len({(each.perturb, each.samples) for each in noises(declaration.within)}) > 1:
        yield Refusal("a tolerance has one `noise`, with one perturbation", spans.within)


def _of_configurations(declaration: EquivalenceDeclaration) -> Iterator[Refusal]:
    """References and meshes that cannot be run, each once for all values of sweeps."""
    layout, spans = declaration.layout, declaration.spans
    assert layout is not None
    configurations = configurations_of(declaration)
    if not configurations:
        says = "no configuration is compared with another: see `require` and `equal when`"
        yield Refusal(says, declaration.span)
    told = set()
    for each in configurations:
        sides = ((each.reference, spans.reference), (each.candidate, spans.candidate))
        for number, (settings, span) in enumerate(sides):
            try:
                mesh = mesh_of(layout, settings)
                if not number:
                    _refuse_cut(layout, mesh)
            except NotExecuted as why:
                if str(why) not in told:
                    told.add(str(why))
                    yield Refusal(str(why), span)


def _refuse_cut(layout: LayoutDeclaration, mesh: MeshDeclaration) -> None:
    """Refuse a reference that is cut over another axis than `pp`. Raises NotExecuted."""
    cut = [f"{axis}: {n}" for axis, n in mesh.all_axes.items() if n > 1 and axis != "pp"]
    if cut:
        says = "the reference runs on one rank, or is a pipeline"
        raise NotExecuted(f"{says}, and has {', '.join(cut)}: set these to 1 in `reference`")
    if mesh.world > 1 and not layout.stages:
        raise NotExecuted(f"the reference is a pipeline, and `{layout.name}` has no stages")


def mesh_of(layout: LayoutDeclaration, settings: Settings) -> MeshDeclaration:
    """The mesh with the sizes that a side sets; all of one rank if the mesh is. Raises NotExecuted."""

    def sized(axes: Axes, alone: bool) -> Axes:
        return tuple(
            (name, 1 if alone and name not in settings else int(str(settings.get(name, size))))
            for name, size in axes
        )

    mesh = layout.mesh
    axes = sized(mesh.axes, False)
    world = prod(size for _, size in axes)
    regroups = tuple((name, sized(each, world == 1)) for name, each in mesh.regroups)
    if settings.get("world_size", world) != world:
        raise NotExecuted(f"`world_size: {settings['world_size']}`, and its mesh has {world} ranks")
    for name, each in regroups:
        if prod(size for _, size in each) != world:
            raise NotExecuted(f"`{name}` regroups another number of ranks than {world}")
    return replace(mesh, axes=axes, regroups=regroups)
