"""The layouts that ship, with the sizes, the mesh and the stages of a job of the tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tests.megatron.layouts import LAYERS, Layout
from tspec.resolve import load
from tspec.resolve.program.sharding import (
    Axes,
    DimsDeclaration,
    LayoutDeclaration,
    MeshDeclaration,
    Modules,
    Placement,
    Shape,
    Stage,
    Tie,
)
from tspec.resources import shipped

HEADS = 4
SIZES = {
    "positions": 16, "hidden": 32, "heads": HEADS, "head": 8, "ffn": 64,
    "experts": 4, "expert_ffn": 64, "shared_ffn": 64,
}  # fmt: skip
"""Those of the model that the jobs of these tests train."""
EMBEDDING = "embedding.word_embeddings.weight"
LAST = ("decoder.final_layernorm", "output_layer", "GPTModel")
"""The modules of the last stage beside its layers."""


def family(job: Layout) -> str:
    """The shipped layout that is of a job's model."""
    return "moe" if job.experts else "llama" if job.swiglu else "gpt"


def of_the_job(name: str, job: Layout) -> LayoutDeclaration:
    """A shipped layout with the sizes, the mesh, the ties and the stages of a job. It pads the vocabulary if the job does."""
    program = load([shipped("specs") / "megatron" / "layouts" / f"{name}.tspec"]).program
    assert program is not None
    [layout] = program.layouts
    sizes = {axis: getattr(job, axis) for axis in ("tp", "cp", "dp", "pp", "etp", "ep")}
    sizes["edp"] = job.tp * job.cp * job.dp // (job.ep * job.etp)

    def sized(axes: Axes) -> Axes:
        return tuple((axis, sizes[axis]) for axis, _ in axes)

    mesh = MeshDeclaration(
        name, "t", sized(layout.mesh.axes), tuple((n, sized(a)) for n, a in layout.mesh.regroups)
    )
    places = layout.placements if job.padded else tuple(map(unpadded, layout.placements))
    groups = job.kv or HEADS
    of_job = {"groups": groups, "q_per_group": HEADS // groups, "vocab": job.vocabulary}
    if job.experts:
        of_job["experts"] = job.experts
    return replace(
        layout,
        mesh=mesh,
        dims=DimsDeclaration(name, "t", tuple((SIZES | of_job).items())),
        placements=places,
        ties=() if job.untied else (Tie(EMBEDDING, "output_layer.weight"),),
        stages=tuple(stages(job)),
    )


def unpadded(place: Placement) -> Placement:
    """A place without the padding of its dimensions."""
    if not isinstance(place.shape, Shape):
        return place
    dimensions = tuple(replace(each, padding=()) for each in place.shape.dimensions)
    return replace(place, shape=Shape(dimensions))


def stages(job: Layout) -> Iterable[Stage]:
    """The stages of a job: the chunks of a stage far apart, with as many layers in each but the first."""
    chunks = job.pp * job.virtual
    begun = 0
    for place in range(chunks):
        chunk, number = divmod(place, job.pp)
        first, last = place == 0, place == chunks - 1
        held = LAYERS // chunks
        if job.first:
            held = job.first if first else (LAYERS - job.first) // (chunks - 1)
        yield Stage(
            number,
            chunk,
            (
                *([Modules("embedding")] if first else []),
                Modules("decoder.layers.", (begun, begun + held - 1)),
                *(map(Modules, LAST) if last else []),
            ),
        )
        begun += held
