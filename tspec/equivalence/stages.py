"""The recording of a reference that is a pipeline: the tensors of all stages, as one rank would have recorded them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tspec.equivalence.launch import Failed
from tspec.equivalence.recording import EXACT, GRADIENT_SQUARES, ModuleCall, Recording, TensorName
from tspec.equivalence.shards import LAYOUT_KINDS, merge_by_layout, shards_of
from tspec.equivalence.sides import GRADIENTS_OF_ACTIVATIONS, Trial
from tspec.layout.places import stages_of
from tspec.layout.ranks import coordinates_of
from tspec.resolve.program.sharding import LayoutDeclaration

_AFTERWARDS = {
    "param_grads": 2,
    "gradient_norms": 2,
    "params": 3,
    "buffers": 3,
    "states": 3,
    "updates": 3,
    GRADIENT_SQUARES: 2,
}
"""The phase of a step in which the other kinds are produced. Activations and their gradients have
phase 1.
"""


def joined(trial: Trial, stages: Sequence[Recording]) -> Recording:
    """Join the recordings of a reference's ranks. Raises launch.Failed if they do not fit the
    layout.

    Each rank has all tensors of its stage. A tensor without a stage in the layout counts only if
    one rank alone has it.
    """
    if len(stages) == 1:
        return stages[0]
    asked = replace(trial, layout=trial.reference_layout, sizes=trial.reference_sizes)
    places = [{name: place for place, name in enumerate(each.tensors)} for each in stages]
    found: dict[tuple[int, ...], tuple[TensorName, int]] = {}
    for name in dict.fromkeys(name for each in stages for name in each.tensors):
        rank = _holder(asked, name, stages)
        if rank is not None:
            found[(*_when(asked, name, rank), places[rank][name])] = (name, rank)
    modules: dict[str, ModuleCall] = {}
    filled: dict[str, float] = {}
    for each in stages:
        modules = {**each.modules, **modules}
        filled = {**each.filled, **filled}
    order = [found[when] for when in sorted(found)]
    tensors = {name: stages[rank].tensors[name] for name, rank in order}
    sketched = {
        name: stages[rank].sketched[name] for name, rank in order if name in stages[rank].sketched
    }
    generated = {name: shape for each in stages for name, shape in each.generated.items()}
    skipped = frozenset(update for each in stages for update in each.skipped)
    inexact = frozenset(one for each in stages for one in each.inexact)
    return Recording(
        *(tensors, filled, modules),
        sketched=sketched,
        generated=generated,
        skipped=skipped,
        inexact=inexact,
        undropped=frozenset(name for each in stages for name in each.undropped),
        drawing=frozenset(name for each in stages for name in each.drawing),
    )


def whole_models(layout: LayoutDeclaration, ranks: Sequence[Recording]) -> Sequence[Recording]:
    """The recordings of a run in which no rank has a second stage as a model of its own. Raises
    launch.Failed otherwise.

    Modules of such a second model have names as `Stage#2.blocks.2` unless a framework names the
    stage. No tensor of the reference has such a name.
    """
    for rank, each in enumerate(ranks):
        for name in each.modules:
            model, _, module = name.partition(".")
            if "#" in model and module and stages_of(layout, module):
                first = model.partition("#")[0]
                raise Failed(
                    f"rank {rank} has several models, `{first}` and `{model}`, and `{module}` of the second is that of a "
                    f"stage in `{layout.name}`: several stages on a rank are put together if they are those of a schedule "
                    "of torch's pipelines or chunks of megatron-core's model. Compare with one stage on each rank",
                    "",
                )
    return ranks


def first_stage(trial: Trial) -> tuple[int, ...]:
    """The ranks of the reference that see the inputs."""
    mesh = trial.reference_layout.mesh
    return tuple(rank for rank in range(mesh.world) if not coordinates_of(mesh, rank).get("pp", 0))


def _holder(trial: Trial, name: TensorName, stages: Sequence[Recording]) -> int | None:
    """The first rank whose recording of a tensor is valid; None if a run on one rank has no such
    tensor.
    """
    has = [rank for rank, each in enumerate(stages) if name in each.tensors]
    if any(_is_inner_chunk(name, stages[rank]) for rank in has):
        return None
    if name.kind == "input_grads":  # a tensor sent by another stage is no input of the run
        named = stages_of(trial.layout, name.module)
        begins = not named or any((each.number, each.chunk) == (0, 0) for each in named)
        return next((rank for rank in has if begins and rank in first_stage(trial)), None)
    full = stages[has[0]].shape(name)
    given = (
        [] if name.kind not in LAYOUT_KINDS else [rank for rank, _ in shards_of(trial, name, full)]
    )
    if not given:
        return has[0] if len(has) == 1 or name.kind in _AFTERWARDS else None
    if name.kind in _AFTERWARDS and not set(has) <= set(given):
        [other, *_] = sorted(set(has) - set(given))
        raise Failed(f"the reference does not fit its layout: rank {other} has {name}", "")
    right = stages[given[0]].shape(name) if given[0] in has else full
    held = [each.tensors.get(name) for each in stages]
    merged = merge_by_layout(trial, name, right, held, stages)
    said = [each.message for each in merged.faults if each.kind != "layout"] if merged else []
    if merged and name.kind in EXACT and merged.spreads:
        said.append("its replicas differ")
    if said:
        raise Failed(f"the reference does not fit its layout: {name}: {said[0]}", "")
    return given[0]


def _is_inner_chunk(name: TensorName, stage: Recording) -> bool:
    """True if a tensor belongs to a chunk that is called from outside and is not the last. Its name
    is the class's with a number, as `Model.stages.1`.
    """
    call = stage.modules.get(name.module)
    return call is not None and not call.parent and name.module.startswith(f"{call.kind}.")


def _when(trial: Trial, name: TensorName, rank: int) -> tuple[int, ...]:
    """The place of a tensor in a run on one rank: forward through the stages, then back."""
    named = stages_of(trial.layout, name.subject)
    at = coordinates_of(trial.layout.mesh, rank).get("pp", 0)
    chunk, stage = (named[0].chunk, named[0].number) if named else (0, at)
    back = -1 if name.kind in GRADIENTS_OF_ACTIVATIONS else 1
    when = (name.step, _AFTERWARDS.get(name.kind, 1), name.microbatch, 1 - back)
    return (*when, back * chunk, back * stage, rank)
