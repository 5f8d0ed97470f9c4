"""Which module is wrong by itself: the candidate is run again with the reference's tensors at the bounds of each module.

What flows into a module, out of it, and back into it as a gradient is recorded, and then rewritten with what the
reference has (TTrace, section 4.3). So an error does not flow on, and what is wrong was made since the last bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from tspec.equivalence.check import (
    Launch,
    Outcome,
    ReferenceRecordings,
    compare,
    run_candidate,
    run_reference,
)
from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.evidence import NONE, Evidence, FaultClass
from tspec.equivalence.launch import launch
from tspec.equivalence.losses import gradient_factor
from tspec.equivalence.pieces import data_axes, parameter_pieces, placed
from tspec.equivalence.recording import ModuleCall, Recording, TensorName, write
from tspec.equivalence.sides import GRADIENTS_OF_ACTIVATIONS, LOCALIZED, Trial
from tspec.layout.places import stages_of
from tspec.layout.ranks import coordinates_of

REWRITTEN = ("inputs", "outputs", *GRADIENTS_OF_ACTIVATIONS)
FROM_GRADIENTS = ("params", "states")
"""What an update makes."""
EVERYWHERE = "all parameters"
"""What is named where no gradient of a parameter is right."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something that is wrong by itself.

    `module` is empty for the script's own code; `part` says what of it is wrong. `times` is how many
    times its tolerance the worst of its tensors is off.
    """

    module: str
    part: str
    times: float
    tensors: tuple[TensorName, ...]
    evidence: Evidence
    call: ModuleCall | None


@dataclass(frozen=True, slots=True)
class Localization:
    """What is wrong by itself, the worst first, and modules that could not be judged alone.

    `comparisons` are those with rewritten tensors.
    """

    suspects: tuple[Suspect, ...]
    unjudged: tuple[str, ...]
    comparisons: tuple[TensorComparison, ...]


def localize(
    trial: Trial,
    reference: ReferenceRecordings,
    candidate: Sequence[Recording],
    folder: Path,
    start: Launch = launch,
) -> Localization:
    """Run the candidate again, with rewritten tensors, and judge each module. Raises launch.Failed."""
    rewrites = folder / "rewrites"
    rewrites.mkdir()
    begins = trial.origin is not None
    weights = list(parameter_pieces(trial, reference.recording)) if begins else [{}] * trial.world
    for rank, tensors in enumerate(_rewrites(trial, reference.recording, candidate)):
        write(rewrites, rank, Recording({**tensors, **weights[rank]}, {}))
    again = run_candidate(trial, reference.recording, folder, rewrites, start)
    outcome = compare(judging_all(trial), reference, again)
    modules = _called(trial, again)
    seen = tuple(modules)
    modules = {**reference.recording.modules, **modules}
    placed = {(each.name.kind, each.name.name) for each in outcome.comparisons}
    return Localization(
        tuple(suspects(outcome, modules, seen)),
        tuple(_unjudged(reference.recording.modules, placed)),
        outcome.comparisons,
    )


def _called(trial: Trial, ranks: Sequence[Recording]) -> dict[str, ModuleCall]:
    """The modules that the candidate called, each as a rank tells it whose stage has it."""
    modules: dict[str, ModuleCall] = {}
    others: dict[str, ModuleCall] = {}
    for rank, each in enumerate(ranks):
        at = coordinates_of(trial.layout.mesh, rank).get("pp", 0)
        for name, call in each.modules.items():
            stages = stages_of(trial.layout, name)
            holds = not stages or at in {stage.number for stage in stages}
            (modules if holds else others).setdefault(name, call)
    return {**others, **modules}


def judging_all(trial: Trial) -> Trial:
    """The trial with all kinds compared that it takes to judge modules alone."""
    return replace(trial, kinds=tuple(dict.fromkeys((*trial.kinds, *LOCALIZED))))


def localize_sketched(
    trial: Trial,
    reference: ReferenceRecordings,
    candidate: Sequence[Recording],
    folder: Path,
    start: Launch = launch,
) -> Localization:
    """The same of sketches: the reference runs again with those tensors in full that are to be rewritten. Raises launch.Failed.

    These are the wrong ones: what is right flows on as it is.
    """
    found = compare(judging_all(trial), reference, candidate)
    wrong: tuple[TensorComparison | Fault, ...] = (*found.wrong, *found.faults)
    full = frozenset(each.name for each in wrong if each.name.kind in REWRITTEN)
    again = replace(trial, full=full)
    place = folder / "full"
    place.mkdir()
    return localize(again, run_reference(again, place, start), candidate, place, start)


def _rewrites(
    trial: Trial, reference: Recording, candidate: Sequence[Recording]
) -> list[dict[TensorName, Tensor]]:
    """Each rank's pieces of the reference's tensors. A piece with padding is left as it is."""
    found: list[dict[TensorName, Tensor]] = [{} for _ in range(trial.world)]
    factor = gradient_factor(
        trial.layout.mesh.axes, data_axes(trial, reference), reference.tensors, candidate
    )
    for name, tensor in reference.tensors.items():
        if name.kind not in REWRITTEN or name in reference.sketched:
            continue
        if name.kind in GRADIENTS_OF_ACTIVATIONS:
            tensor = tensor / factor
        for piece in placed(trial, name, tuple(tensor.shape)):
            positions = piece.cut.positions()
            if bool((positions < 0).any()):
                continue
            held = tensor.flatten()[positions]
            found[piece.rank][name] = torch.zeros_like(held) if any(piece.summand) else held
    return found


# --- whom to blame --------------------------------------------------------------------------------


def suspects(
    outcome: Outcome, modules: Mapping[str, ModuleCall], seen: Sequence[str]
) -> Iterator[Suspect]:
    """What is wrong by itself in a run with rewritten tensors, the worst first.

    `seen` are the modules that the candidate called: those within a compiled one are not.
    """
    found: dict[str, dict[str, list[TensorComparison | Fault]]] = {}
    judged = {(each.name.kind, each.name.name) for each in outcome.comparisons}
    gradients = {each.name.name for each in outcome.comparisons if each.name.kind == "param_grads"}
    # A layout that does not fit is no fault of the job.
    faults = [each for each in outcome.faults if each.fault.kind != "layout"]
    wrong: tuple[TensorComparison | Fault, ...] = (*outcome.wrong, *faults)
    of_gradients = [each for each in wrong if each.name.kind == "param_grads"]
    off = {each.name.name for each in of_gradients}
    of_norms = [each for each in wrong if each.name.kind == "gradient_norms"]
    norms = {each.name.step for each in of_norms}
    scaled = not off or (gradients <= off and _scaled_by(of_norms, of_gradients))
    for each in sorted(wrong, key=lambda each: each.order):
        if each.name.kind == "gradient_norms" and not scaled:
            continue  # what a wrong gradient does
        if each.name.kind == "param_grads" and scaled and each.name.step in norms:
            continue  # what a wrong norm does: all gradients are scaled by it
        if each.name.kind in FROM_GRADIENTS and (
            each.name.subject in off or each.name.step in norms
        ):
            continue  # what a wrong gradient does, or a wrong norm
        if each.name.kind == "param_grads" and gradients <= off and len(off) > 1:
            module, part = EVERYWHERE, "gradients"
        else:
            module, part = _blamed(each.name, modules, judged, seen)
        found.setdefault(module, {}).setdefault(part, []).append(each)
    blamed = (_suspect(module, parts, modules) for module, parts in found.items())
    return iter(sorted(blamed, key=lambda each: -each.times))


def _scaled_by(
    norms: Iterable[TensorComparison | Fault], gradients: Iterable[TensorComparison | Fault]
) -> bool:
    """Whether all gradients were divided by a norm that is wrong: they are off by the inverse of its factor, and not by the factor."""
    factors = [each.evidence.factor for each in norms]
    return bool(factors) and all(
        of is not None and by is not None and abs(of * by - 1) < abs(of / by - 1)
        for of in (each.evidence.factor for each in gradients)
        for by in factors
    )


def _suspect(
    module: str,
    parts: Mapping[str, list[TensorComparison | Fault]],
    modules: Mapping[str, ModuleCall],
) -> Suspect:
    wrong = [each for part in parts.values() for each in part]
    worst = sorted(wrong, key=lambda each: -each.times)
    known = [each.evidence for each in worst if each.evidence.says]
    names = tuple(dict.fromkeys(each.name for each in worst))
    evidence = min(known, key=_strength, default=NONE)
    if module == EVERYWHERE and 2 * sum(each.suggests == evidence.suggests for each in known) < len(
        wrong
    ):
        evidence = NONE  # it is that of a few
    said = ", ".join(parts)
    return Suspect(module, said, worst[0].times, names, evidence, modules.get(module))


def _strength(evidence: Evidence) -> int:
    """Earlier numbers are exact; a missing reduction makes what else is seen."""
    order: tuple[FaultClass, ...] = ("stale", "missing reduction")
    return order.index(evidence.suggests) if evidence.suggests in order else len(order)


def _blamed(
    name: TensorName,
    modules: Mapping[str, ModuleCall],
    judged: set[tuple[str, str]],
    seen: Sequence[str],
) -> tuple[str, str]:
    """The module whose code made a tensor from what was rewritten last, and which part of it that is."""
    parent = _parent(name.name, modules)
    match name.kind:
        case "outputs":
            return name.name, "forward pass"
        case "inputs":
            return parent, f"what it hands to {name.name}"
        case "output_grads":
            made = _returned(name.name, modules)
            parent = _parent(made, modules)
            took = list(_innermost(_takers(made, modules)))
            if not took and ("output_grads", parent) not in judged:  # it came through the parent's
                took = list(_innermost(_takers(parent, modules)))
            return (", ".join(took), "backward pass") if took else (parent, "backward pass")
        case "input_grads":
            return name.name, "backward pass"
        case "losses":
            return "", "loss"
        case "gradient_norms":
            return "", "norm of the gradients"
    outermost = next((each for each in seen if not _parent(each, modules)), "")
    holders = (each for each in seen if name.name.startswith(f"{each}."))
    owner = max(holders, key=len, default=outermost)
    parts = {
        "param_grads": "gradients of its parameters",
        "params": "update of its parameters",
        "states": "optimizer's state of its parameters",
    }
    return owner, parts.get(name.kind, name.kind)


def _parent(name: str, modules: Mapping[str, ModuleCall]) -> str:
    call = modules.get(name)
    return "" if call is None else call.parent


def _returned(name: str, modules: Mapping[str, ModuleCall]) -> str:
    """The outermost module that returned a module's output as it is: the gradient came to that one first."""
    parent = _parent(name, modules)
    while parent in modules and modules[parent].returns == name:
        name, parent = parent, _parent(parent, modules)
    return name


def _takers(name: str, modules: Mapping[str, ModuleCall]) -> Iterator[str]:
    """The modules to which the output of a module is given, also those within them that are given the same tensor."""
    wanted = {("outputs", name)}
    for each, call in modules.items():  # in the order of their first calls
        if call.takes in wanted:
            wanted.add(("inputs", each))
            yield each


def _innermost(names: Iterable[str]) -> Iterator[str]:
    """The modules that hold none of the others."""
    found = list(names)
    for each in found:
        if not any(other.startswith(f"{each}.") for other in found):
            yield each


def _unjudged(modules: Mapping[str, ModuleCall], placed: set[tuple[str, str]]) -> Iterator[str]:
    """Modules whose input was not rewritten: it has no place, and is no tensor that has one."""
    for name, call in modules.items():
        if not call.numbers or not call.parent:
            continue  # the script's batch, as tokens or as numbers
        if ("inputs", name) not in placed and call.takes not in placed:
            yield name
