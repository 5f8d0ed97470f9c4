"""The code to blame for a wrong tensor whose inputs are right: a module, or the script, with its
line.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tspec.equivalence.recording import ModuleCall, ModuleInput, Recording, TensorName, module_of
from tspec.equivalence.sides import Trial
from tspec.layout.places import stages_of
from tspec.layout.ranks import coordinates_of

EVERYWHERE = "all parameters"
"""The name for a fault of all gradients of parameters, or of all updates."""


@dataclass(frozen=True, slots=True)
class RunCalls:
    """Calls of modules in a run.

    `modules` are the modules of both sides. `seen` are those that the candidate called; modules
    inside a compiled one are not seen. `lines` maps a kind of tensor to the line of the script that
    first computed the loss, norm or update behind it. `reference` has the modules of the reference
    alone.
    """

    modules: Mapping[str, ModuleCall] = field(default_factory=dict)
    seen: tuple[str, ...] = ()
    lines: Mapping[str, str] = field(default_factory=dict)
    reference: Mapping[str, ModuleCall] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Blame:
    """The code that made a tensor, and the part of it at fault.

    `module` is empty for the script's own code. `lines` are the lines of the script that did more
    than call the module.
    """

    module: str
    part: str
    call: ModuleCall | None
    lines: tuple[str, ...]


def calls_of(trial: Trial, reference: Recording, candidate: Sequence[Recording]) -> RunCalls:
    """The calls of a run. Each module's call is taken from a rank whose stage has the module."""
    modules: dict[str, ModuleCall] = {}
    others: dict[str, ModuleCall] = {}
    lines: dict[str, str] = {}
    for rank, each in enumerate(candidate):
        lines = {**each.lines, **lines}
        at = coordinates_of(trial.layout.mesh, rank).get("pp", 0)
        for name, call in each.modules.items():
            stages = stages_of(trial.layout, name)
            holds = not stages or at in {stage.number for stage in stages}
            (modules if holds else others).setdefault(name, call)
    modules = {**others, **modules}
    both = {**reference.modules, **modules}
    tied = {name: replace(call, shares=_shared(name, call, trial)) for name, call in both.items()}
    return RunCalls(tied, tuple(modules), lines, reference.modules)


def _shared(module: str, call: ModuleCall, trial: Trial) -> tuple[str, ...]:
    """The parameters that a module shares with others: on its own rank, and by the layout's ties with
    those of other stages.
    """
    ties = ((tie.left, tie.right) for tie in trial.layout.ties)
    of_layout = (
        other
        for tie in ties
        for one, other in (tie, tie[::-1])
        if one.startswith(f"{module}.") and not other.startswith(f"{module}.")
    )
    return tuple(dict.fromkeys((*call.shares, *of_layout)))


def blamed(name: TensorName, calls: RunCalls, judged: Container[tuple[str, str]]) -> Blame:
    """The code that computed a tensor from tensors that are right. `judged` are kinds and names of
    the compared tensors.
    """
    modules = calls.modules
    parent = _parent(name.name, modules)
    match name.kind:
        case "outputs":
            found = _of(name.name, "forward pass", calls)
            return replace(found, call=found.call and found.call.number(name.call))
        case "inputs":
            of = _handed_on(name.name, calls, judged)
            maker = _maker(of, calls, judged)
            if maker:
                return _of(maker, "forward pass", calls)
            handed = modules.get(module_of(of))
            line = "" if handed is None else handed.number(name.call).called
            return _of(_parent(module_of(of), modules), f"what it hands to {of}", calls, line)
        case "output_grads":
            made = _returned(name.name, modules)
            parent = _parent(made, modules)
            took = list(_innermost(_takers((name.name, made), modules)))
            user = _user(made, modules)
            # Otherwise the gradient came through the parent's output.
            if not took and user == parent and ("output_grads", parent) not in judged:
                took = list(_innermost(_takers((parent,), modules)))
            if took:  # one that the candidate gives another tensor hands back nothing
                others = _innermost(_takers((name.name, made), calls.reference))
                took += [each for each in others if each not in took]
                return _of_several(took, "backward pass", calls)
            line = "" if user else calls.lines.get("losses", "")
            return _of(user, "backward pass", calls, line)
        case "input_grads":
            call = modules.get(name.module)
            if call is not None and call.gives_back == name.name:  # it has no backward pass
                of_output = replace(name, kind="output_grads", name=name.module)
                return blamed(of_output, calls, judged)
            return _of(name.module, "backward pass", calls)
        case "losses":
            return _of("", "loss", calls, calls.lines.get("losses", ""))
        case "updates":
            return _of("", "update", calls, calls.lines.get("params", ""))
        case "gradient_norms":
            line = calls.lines.get("gradient_norms", "")
            return _of("", "norm of the gradients", calls, line)
    outermost = next((each for each in calls.seen if not _parent(each, modules)), "")
    holders = (each for each in calls.seen if name.name.startswith(f"{each}."))
    owner = max(holders, key=len, default=outermost)
    if name.is_first_weight:
        return Blame(owner, "first weights of its parameters", None, ())
    parts = {
        "param_grads": "gradients of its parameters",
        "params": "update of its parameters",
        "states": "optimizer's state of its parameters",
    }
    line = calls.lines.get("params", "") if name.kind in ("params", "states") else ""
    return _of(owner, parts.get(name.kind, name.kind), calls, line)


def everywhere(name: TensorName, calls: RunCalls) -> Blame:
    """The finding that no tensor of a kind is right in a step: gradients of parameters, updates (kind `params`), or first weights."""
    if name.is_first_weight:
        return Blame(EVERYWHERE, "first weights", None, ())
    part, of = ("update", "params") if name.kind == "params" else ("gradients", "losses")
    return _of(EVERYWHERE, part, calls, calls.lines.get(of, ""))


MADE_FROM = {
    "losses": "outputs",
    "output_grads": "outputs",
    "input_grads": "outputs",
    "param_grads": "output_grads",
    "gradient_norms": "param_grads",
    "updates": "param_grads",
    "params": "param_grads",
    "states": "param_grads",
    "buffers": "outputs",
}
"""Kind of tensor -> the kind of its inputs."""


def first_blamed(
    name: TensorName, calls: RunCalls, judged: Container[tuple[str, str]], kinds: Container[str]
) -> Blame | None:
    """The code that made the first wrong tensor of a run; None if what it is made from was not compared.

    `judged` are kinds and names of all tensors that were compared, `kinds` their kinds.
    """
    if MADE_FROM.get(name.kind, name.kind) not in kinds and not name.is_first_weight:
        return None
    found = blamed(name, calls, judged)
    if name.kind == "outputs" and next(unjudged_inputs(name.name, calls, judged), None):
        return replace(found, part="forward pass, or what it is given")
    return found


def unjudged_inputs(
    module: str, calls: RunCalls, judged: Container[tuple[str, str]]
) -> Iterator[str]:
    """The inputs of a module that may be wrong: no tensor that was compared, nor the script's own batch."""
    call = calls.modules[module]
    if call.parent:
        yield from (each.name for each in call.inputs if not _is_judged(each, calls, judged))


def _is_judged(given: ModuleInput, calls: RunCalls, judged: Container[tuple[str, str]]) -> bool:
    """True if an input is a compared tensor, or the script's own batch.

    False if the reference's module takes the output of another module there.
    """
    if not given.numbers or ("inputs", given.name) in judged:
        return True
    known = _input(given.name, calls.reference)
    if known is not None and known.takes and given.takes and known.takes != given.takes:
        return False
    if given.takes in judged:
        return True
    kind, taken = given.takes or ("", "")
    through = _input(taken, calls.modules) if kind == "inputs" else None
    if through is None:
        return False
    return not calls.modules[module_of(taken)].parent or _is_judged(through, calls, judged)


def _handed_on(name: str, calls: RunCalls, judged: Container[tuple[str, str]]) -> str:
    """The input of the outermost module through which a tensor came to an inner one. Each module on
    the way got it from its parent, in both runs, and it was compared at none of them.
    """
    given, known = (_input(name, modules) for modules in (calls.modules, calls.reference))
    kind, taken = (given.takes if given is not None else ()) or ("", "")
    if kind != "inputs" or (kind, taken) in judged:
        return name
    if known is not None and known.takes != (kind, taken):
        return name
    return _handed_on(taken, calls, judged)


def _maker(name: str, calls: RunCalls, judged: Container[tuple[str, str]]) -> str:
    """The module that produced an input, if its output was not compared but its own inputs were.
    Else empty.

    The reference's module must take the output of the same module. Otherwise the choice of the
    module may itself be the fault.
    """
    given, known = (_input(name, modules) for modules in (calls.modules, calls.reference))
    if given is None or known is None or given.takes != known.takes:
        return ""
    kind, made = given.takes or ("", "")
    passed: set[str] = set()  # a tensor that is kept from call to call goes round
    while kind == "outputs" and made in calls.modules and (kind, made) not in judged:
        passed.add(made)
        inner = calls.modules[made].returns
        if not inner or inner in passed:
            return "" if next(unjudged_inputs(made, calls, judged), None) else made
        made = inner
    return ""


def _input(name: str, modules: Mapping[str, ModuleCall]) -> ModuleInput | None:
    """The input of a name, if there is such a module."""
    call = modules.get(module_of(name))
    return next((each for each in call.inputs if each.name == name), None) if call else None


def _of(module: str, part: str, calls: RunCalls, line: str = "") -> Blame:
    return Blame(module, part, calls.modules.get(module), (line,) if line else ())


def _of_several(names: Sequence[str], part: str, calls: RunCalls) -> Blame:
    """The blame for one of several modules, with the line that called each of them."""
    if len(names) == 1:
        return _of(names[0], part, calls)
    known = (calls.modules.get(each) for each in names)
    lines = dict.fromkeys(each.called for each in known if each is not None and each.called)
    return Blame(", ".join(names), part, None, tuple(lines))


def _parent(name: str, modules: Mapping[str, ModuleCall]) -> str:
    call = modules.get(name)
    return "" if call is None else call.parent


def _returned(name: str, modules: Mapping[str, ModuleCall]) -> str:
    """The outermost module that returned a module's output unchanged. The gradient reached that module first."""
    parent = _parent(name, modules)
    while parent in modules and modules[parent].returns == name:
        name, parent = parent, _parent(parent, modules)
    return name


def _user(name: str, modules: Mapping[str, ModuleCall]) -> str:
    """The module whose code uses an output. A parent that returns it beside its own first output
    passes it on to the module that called the parent.
    """
    parent = _parent(name, modules)
    while parent in modules and name in modules[parent].passes_on:
        parent = _parent(parent, modules)
    return parent


def _takers(names: Iterable[str], modules: Mapping[str, ModuleCall]) -> Iterator[str]:
    """The modules that take an output of one of `names`, including inner modules that are given the
    same tensor.
    """
    wanted = {("outputs", each) for each in names}
    for each, call in modules.items():  # in the order of their first calls
        taken = [("inputs", given.name) for given in call.inputs if given.takes in wanted]
        wanted.update(taken)
        if taken:
            yield each


def _innermost(names: Iterable[str]) -> Iterator[str]:
    """The modules that hold none of the others."""
    found = list(names)
    for each in found:
        if not any(other.startswith(f"{each}.") for other in found):
            yield each
