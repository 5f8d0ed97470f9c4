"""Find modules that are wrong by themselves: run the candidate again with the reference's tensors
at each module's boundary.

The run records each module's inputs, outputs and output gradients, and then replaces them by the
reference's (TTrace, section 4.3). So errors do not propagate: each error was made after the last
boundary.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from tspec.equivalence.blame import EVERYWHERE, Blame, RunCalls, blamed, everywhere, unjudged_inputs
from tspec.equivalence.check import compare
from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.evidence import NONE, Evidence, FaultClass, times
from tspec.equivalence.expert_names import names_of_ranks, together
from tspec.equivalence.later_reductions import agreeing_later
from tspec.equivalence.launch import launch
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.recording import ModuleCall, Recording, TensorName
from tspec.equivalence.runs import (
    Launch,
    ReferenceRecordings,
    run_candidate,
    run_reference,
    write_shards,
)
from tspec.equivalence.shards import parameter_shards, placed
from tspec.equivalence.sides import GRADIENTS_OF_ACTIVATIONS, LOCALIZED, Trial

REWRITTEN = ("inputs", "outputs", *GRADIENTS_OF_ACTIVATIONS)
FROM_GRADIENTS = ("params", "states")
"""Kinds that an update makes."""
Wrong = TensorComparison | Fault


@dataclass(frozen=True, slots=True)
class Suspect(Blame):
    """A module that is wrong by itself. `times` is the largest error of its tensors divided by the
    tolerance.
    """

    times: float
    tensors: tuple[TensorName, ...]
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Localization:
    """The modules that are wrong by themselves, worst first, and the inputs for which no module
    could be judged alone.

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
    found = compare(replace(trial, kinds=GRADIENTS_OF_ACTIVATIONS), reference, candidate)
    return _localize(trial, reference, found, folder, start)


def _localize(
    trial: Trial, reference: ReferenceRecordings, found: Outcome, folder: Path, start: Launch
) -> Localization:
    """The same, after `found` was found in the first run of the candidate."""
    rewrites = folder / "rewrites"
    rewrites.mkdir()
    begins = trial.origin is not None
    weights = list(parameter_shards(trial, reference.recording)) if begins else [{}] * trial.world
    given = zip(_rewrites(trial, reference.recording, found), weights, strict=True)
    shards = ({**tensors, **begins_with} for tensors, begins_with in given)
    write_shards(trial, reference.recording, rewrites, shards)
    again = run_candidate(trial, reference.recording, folder, rewrites, start)
    outcome = compare(judging_all(trial), reference, again, found.scale)
    return Localization(
        tuple(suspects(outcome)),
        tuple(_unjudged(reference.recording.modules, outcome.judged)),
        outcome.comparisons,
    )


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
    """Localize after a comparison of sketches: record the tensors to be rewritten in full first.
    Raises launch.Failed.

    These are the wrong tensors; right ones propagate unchanged.
    """
    found = compare(judging_all(trial), reference, candidate)
    wrong: tuple[Wrong, ...] = (*found.wrong, *found.faults)
    of = frozenset(each.name for each in wrong if each.name.kind in REWRITTEN)
    full = together(names_of_ranks(trial, reference.recording), of)
    again = replace(trial, full=full)
    place = folder / "full"
    place.mkdir()
    return _localize(again, run_reference(again, place, start), found, place, start)


def _rewrites(trial: Trial, reference: Recording, found: Outcome) -> list[dict[TensorName, Tensor]]:
    """Each rank's shards of the reference's tensors, without those that may be summands."""
    shards: list[dict[TensorName, Tensor]] = [{} for _ in range(trial.world)]
    for name, tensor in reference.tensors.items():
        if name.kind not in REWRITTEN or name in reference.sketched or name in found.summands:
            continue
        if name.kind in GRADIENTS_OF_ACTIVATIONS:
            tensor = tensor / found.scale.gradients
        for shard in placed(trial, name, tuple(tensor.shape)):
            held = shard.cut.of(tensor)
            shards[shard.rank][name] = torch.zeros_like(held) if any(shard.summand) else held
    return shards


# --- whom to blame --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrongTensors:
    """The wrong tensors of a run, in the order of the reference's run, and facts to tell causes from
    effects.

    `first_weights` are parameters that are wrong before any update. `moved` has each parameter with
    a wrong gradient and each wrong parameter, with the step. `gradients` maps a parameter to the
    first step in which its gradient is wrong, unless the update reduces it. `norms` are steps with a
    wrong norm of gradients, and `scaled` says whether it scaled the gradients. `skipped` are steps
    whose update only one side, or only some ranks, skipped. `all_off` are kinds
    and steps in which no tensor is right. `own` are modules and steps in which a module is wrong by
    its own code, or holds a parameter that an earlier step left wrong. `unpassed` are parameters
    and steps in which a rank that holds the parameter lacks a backward pass.
    """

    wrong: tuple[Wrong, ...]
    first_weights: Set[str]
    moved: Sequence[tuple[str, int]]
    gradients: Mapping[str, int]
    norms: Set[int]
    scaled: bool
    skipped: Set[int]
    all_off: Set[tuple[str, int]]
    own: Set[tuple[str, int]]
    unpassed: Set[tuple[str, int]]

    def explain(self, name: TensorName) -> bool:
        """True if a wrong tensor is the effect of a wrong norm, gradient or initial weight, of an
        update that was skipped, or of a backward pass that was not made.
        """
        if name.kind == "gradient_norms":
            return not self.scaled  # wrong gradients make it
        if name.kind == "param_grads":
            if (name.name, name.step) in self.unpassed:
                return True
            return self.scaled and name.step in self.norms  # all gradients are scaled by the norm
        if name.kind not in FROM_GRADIENTS:
            return False
        return (
            (bool(name.step) and name.subject in self.first_weights)
            or self.gradients.get(name.subject, name.step + 1) <= name.step
            or name.step in self.norms
            or name.step in self.skipped
        )


def wrong_tensors(outcome: Outcome) -> WrongTensors:
    """The wrong tensors of a run with rewritten tensors."""
    # A layout that does not fit is no fault of the job.
    faults = [each for each in outcome.faults if each.fault.kind != "layout"]
    equal = outcome.equal_but_for_epsilon
    found: list[Wrong] = [*(each for each in outcome.wrong if each.name not in equal), *faults]
    # A tensor of another shape is not rewritten, and all after it may follow from it.
    shaped = [
        each.order for each in faults if each.fault.kind == "shape" and each.name.kind in REWRITTEN
    ]
    found = [each for each in found if each.order <= min(shaped, default=each.order)]
    later = agreeing_later(outcome.comparisons, outcome.faults)
    clipped = outcome.clipped
    # An update that communicates may be at fault where gradients are not reduced before.
    gradients = _first_steps(
        each for each in found if each.name.kind == "param_grads" and each.name not in later
    )
    moved = [
        (each.name.name, each.name.step)
        for each in found
        if each.name.kind in ("param_grads", "params")  # the former moves a parameter at least
    ]
    wrong = tuple(
        sorted(
            (each for each in found if each.name not in clipped),
            key=lambda each: each.order,
        )
    )
    all_off = {
        (kind, step)
        for kind, left_out in (("param_grads", frozenset[str]()), ("params", gradients.keys()))
        for step in {each.name.step for each in wrong if each.name.kind == kind}
        if _none_is_right(kind, step, outcome, wrong, left_out if step else frozenset())
    }
    norms = [each for each in wrong if each.name.kind == "gradient_norms"]
    unclipped = [each for each in wrong if each.name.kind == "param_grads"]
    all_gradients = any(kind == "param_grads" for kind, _ in all_off)
    steps = {each.name.step for each in wrong}
    return WrongTensors(
        wrong,
        first_weights={each.name.name for each in wrong if each.name.is_first_weight},
        moved=moved,
        gradients=gradients,
        norms={each.name.step for each in norms},
        scaled=not gradients or (all_gradients and _scaled_by(norms, unclipped)),
        skipped={each.name.step for each in faults if each.fault.kind == "skipped"},
        all_off=all_off,
        own={
            *_wrong_by_own_code(wrong),
            *((_owner(of), later) for of, step in moved for later in steps if step < later),
        },
        unpassed={
            (parameter, each.of.step)
            for each in outcome.missing_passes
            for parameter in each.parameters
        },
    )


def suspects(outcome: Outcome) -> Iterator[Suspect]:
    """The modules that are wrong by themselves in a run with rewritten tensors, worst first."""
    found: dict[str, dict[Blame, list[Wrong]]] = {}
    tensors = wrong_tensors(outcome)
    passes: set[tuple[str, int]] = set()  # modules whose own passes are wrong in a step
    for each in tensors.wrong:
        name = each.name
        if tensors.explain(name) and not _is_of_norm(each):
            continue
        blame = _blame(name, outcome, tensors)
        around = _judged_around(blame.module, outcome)
        if name.kind not in FROM_GRADIENTS and _is_held(
            _made_in(blame.module, name, outcome),
            outcome.calls,
            [of for of, step in tensors.moved if step < name.step],
        ):
            continue  # the effect of a parameter that an earlier step left wrong
        if name.kind in REWRITTEN:
            passes.update((module, name.step) for module in blame.module.split(", "))
        if name.kind == "param_grads" and (around, name.step) in passes:
            blame = replace(blame, module=around, call=outcome.calls.modules[around])
        if outcome.is_of_scaled_gradients(name):
            each = replace(each, evidence=_scaled_before(each.evidence))
        found.setdefault(blame.module, {}).setdefault(blame, []).append(each)
    suspected = (_suspect(module, parts) for module, parts in found.items())
    return iter(sorted(suspected, key=lambda each: -each.times))


def _scaled_before(evidence: Evidence) -> Evidence:
    """The evidence for gradients that clipping made equal again, from that of their norm."""
    if evidence.factor is None:
        return evidence
    says = f"their norm is {times(evidence.factor)} times the reference's; clipping divides by it"
    return Evidence("wrong scale", says, evidence.factor)


def _is_of_norm(wrong: Wrong) -> bool:
    """True for a norm that is not that of its gradients, be these right or wrong."""
    return isinstance(wrong, Fault) and wrong.fault.kind == "norm"


def _blame(name: TensorName, outcome: Outcome, tensors: WrongTensors) -> Blame:
    """The code that made a wrong tensor."""
    missing = outcome.missing_pass(name)
    if missing is not None:
        return missing.blame
    if (name.kind, name.step) in tensors.all_off or outcome.is_of_scaled_gradients(name):
        return everywhere(name, outcome.calls)
    blame = blamed(name, outcome.calls, outcome.judged)
    if name.kind == "output_grads":
        return _own_code(blame, name, outcome.calls, tensors.own)
    return blame


def _first_steps(wrong: Iterable[Wrong]) -> dict[str, int]:
    """Each name, and the first step in which its tensor is wrong."""
    found: dict[str, int] = {}
    for each in wrong:
        found[each.name.name] = min(each.name.step, found.get(each.name.name, each.name.step))
    return found


def _wrong_by_own_code(
    wrong: Iterable[Wrong],
) -> Iterator[tuple[str, int]]:
    """Modules whose output is wrong in a step, or the gradient of a parameter that they hold themselves."""
    for each in wrong:
        if each.name.kind == "outputs":
            yield each.name.name, each.name.step
        elif each.name.kind == "param_grads":
            yield _owner(each.name.name), each.name.step


def _owner(parameter: str) -> str:
    """The module that holds a parameter itself."""
    return parameter.rpartition(".")[0]


def _own_code(
    blame: Blame, name: TensorName, calls: RunCalls, wrong: Set[tuple[str, int]]
) -> Blame:
    """Move the blame for a backward pass to the enclosing module, if it takes the same tensor and
    is wrong by its own code: it may use the tensor besides passing it on.
    """
    around = calls.modules.get(blame.module)
    while around is not None and around.parent in calls.modules:
        parent = calls.modules[around.parent]
        if name.name == around.parent or not _is_given(parent, name.name):
            break
        if (around.parent, name.step) in wrong:
            return replace(blame, module=around.parent, call=parent)
        around = parent
    return blame


def _is_given(call: ModuleCall, output: str) -> bool:
    """True if a module takes the output of another one unchanged."""
    return any(each.takes == ("outputs", output) for each in call.inputs)


def _judged_around(module: str, outcome: Outcome) -> str:
    """The innermost module around one, or that one, of whose output the gradient was compared: all within it was made in one go."""
    calls = outcome.calls.modules
    while (
        ("output_grads", module) not in outcome.judged
        and module in calls
        and calls[module].parent in calls
    ):
        module = calls[module].parent
    return module


def _made_in(module: str, name: TensorName, outcome: Outcome) -> str:
    """The module whose parameters a tensor was made from that a module is blamed for.

    A gradient was made from those of all modules around that were given the tensor itself, as the
    block is in which a residual leads past the module.
    """
    if name.kind not in ("param_grads", *GRADIENTS_OF_ACTIVATIONS):
        return module
    found, calls = _judged_around(module, outcome), outcome.calls.modules
    while name.kind == "output_grads" and found in calls:
        parent = calls[found].parent
        if parent not in calls or not _is_given(calls[parent], name.name):
            break
        found = parent
    return found


def _is_held(module: str, calls: RunCalls, parameters: Sequence[str]) -> bool:
    """True if one of the modules holds one of some parameters. The outermost module holds all."""
    if module == EVERYWHERE:
        return bool(parameters)
    for each in module.split(", "):
        call = calls.modules.get(each)
        if call is not None and any(
            not call.parent or name.startswith(f"{each}.") or name in call.shares
            for name in parameters
        ):
            return True
    return False


def _none_is_right(
    kind: str,
    step: int,
    outcome: Outcome,
    wrong: Iterable[Wrong],
    left_out: Set[str],
) -> bool:
    """True if all tensors of a kind are wrong in a step, and there are several.

    Parameters in `left_out` do not count, nor do those whose gradient is round-off alone.
    """
    now = (kind, step)
    names = (each.name for each in outcome.comparisons)
    compared = {name.name for name in names if (name.kind, name.step) == now}
    gradients = {name for of, name in outcome.judged if of == "param_grads"}
    telling = {name for of, name in outcome.telling if of == "param_grads"}
    wrong_now = (each.name for each in wrong if (each.name.kind, each.name.step) == now)
    off = {name.name for name in wrong_now} - left_out
    return len(off) > 1 and compared - left_out - (gradients - telling) <= off


def _scaled_by(norms: Iterable[Wrong], gradients: Iterable[Wrong]) -> bool:
    """True if all gradients were divided by a wrong norm: their factors are nearer to the inverse
    of the norm's factor than to that factor.
    """
    factors = [each.evidence.factor for each in norms]
    return bool(factors) and all(
        of is not None and by is not None and abs(of * by - 1) < abs(of / by - 1)
        for of in (each.evidence.factor for each in gradients)
        for by in factors
    )


def _suspect(module: str, parts: Mapping[Blame, list[Wrong]]) -> Suspect:
    wrong = [each for part in parts.values() for each in part]
    worst = sorted(wrong, key=lambda each: -each.times)
    known = [each.evidence for each in worst if each.evidence.says]
    names = tuple(dict.fromkeys(each.name for each in worst))
    evidence = min(known, key=_strength, default=NONE)
    if module == EVERYWHERE and 2 * sum(each.suggests == evidence.suggests for each in known) < len(
        wrong
    ):
        evidence = NONE  # it is the evidence of a few tensors only
    said = ", ".join(dict.fromkeys(each.part for each in parts))
    lines = tuple(dict.fromkeys(line for each in parts for line in each.lines))
    call = next(iter(parts)).call
    return Suspect(module, said, call, lines, worst[0].times, names, evidence)


def _strength(evidence: Evidence) -> int:
    """The rank of the evidence, the strongest first: equal earlier numbers are exact, and a missing
    reduction explains other evidence.
    """
    order: tuple[FaultClass, ...] = ("stale", "missing reduction")
    return order.index(evidence.suggests) if evidence.suggests in order else len(order)


def _unjudged(
    modules: Mapping[str, ModuleCall], placed: Container[tuple[str, str]]
) -> Iterator[str]:
    """Inputs that were not rewritten: they have no place, and are no tensor that has one."""
    calls = RunCalls(modules)
    return (each for name in modules for each in unjudged_inputs(name, calls, placed))
