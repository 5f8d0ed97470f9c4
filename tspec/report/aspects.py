"""The aspects of a training step that a rule is about, and the influence of aspects on each other.

Findings of one cause are folded into one. That needs knowledge of causes: a forgotten `zero_grad`
makes gradients grow and the loss explode, but it does not switch dropout on in evaluation. The two
tables here hold that knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tspec.builtin.features import FEATURES
from tspec.resolve.program import rules
from tspec.resolve.program.types import CallOf, Entity, ListOf, SetOf, Type, innermost, item_of
from tspec.resolve.program.walk import Part, children, parts_of_claim, roots_of_claim, walk

INFLUENCES = {
    "architecture": {"forward", "ownership", "values"},
    "checkpoint": {"ownership", "agreement", "values"},
    "settings": {"values"},
    "ownership": {"update", "gradients", "values"},
    "mode": {"randomness", "forward", "values"},
    "randomness": {"data", "values"},
    "data": {"forward", "objective", "values"},
    "precision": {"forward", "values"},
    "forward": {"objective", "backward", "gradients", "values"},
    "objective": {"values"},
    "backward": {"gradients", "values"},
    "clearing": {"values"},
    "gradients": {"clipping", "update", "values"},
    "clipping": {"update", "values"},
    "schedule": {"update", "values"},
    "stepping": {"update", "schedule", "values"},
    "update": {"values"},
    "communication": {"agreement", "values"},
    "agreement": {"values"},
    "finiteness": {"values", "stepping", "update"},
    "values": {"finiteness"},
}
"""Aspect -> aspects that a fault in it disturbs directly, causes before effects. Each disturbs itself.

`update` is what an update changes, `stepping` which updates a script makes: a parameter that no
optimizer holds stays as it is, but it makes no script update twice.
"""

NUMERIC = frozenset({"values", "finiteness"})
"""Aspects that are sizes of numbers: symptoms, which nearly everything disturbs."""

SETTINGS = frozenset({"settings"})
"""The aspect of claims about the setup of a job, such as the weight decay of a group or the size of
a kernel.

Sound jobs are set up in such ways too, from their first step on, so a later symptom is no evidence
of a connection. A rule about settings alone is neither the cause nor the effect of a rule about
anything else.
"""

PLACES = frozenset({"agreement", "communication", "checkpoint", "data"})
"""Aspects that say where numbers are, and stay beside `NUMERIC` ones; `norm(p.grad)` is just a number."""

CALLABLES = (
    (r"lr_scheduler|(^|\.)scheduler\.", "schedule"),
    (r"zero_grad|(^|[._])zero_$", "clearing"),
    (r"dropout|Module\.(train|eval)$", "mode"),
    (r"clip_grad|_clip_", "clipping"),
    (r"_loss$|(^|[._])(cross_entropy|kl_div)", "objective"),
    (r"autocast|\bamp\b|GradScaler", "precision"),
    (
        r"torch\.distributed|DistributedDataParallel|all_reduce|all_gather|broadcast",
        "communication",
    ),
    (r"torch\.utils\.data|DataLoader", "data"),
    (r"backward|autograd", "backward"),
    (r"torch\.optim|optimizer|Optimizer|_foreach_|_fused_|addcdiv|addcmul|lerp", "update"),
    (r"state_dict|torch\.(serialization\.)?(save|load)\b", "checkpoint"),
    (r"manual_seed|\brand|bernoulli|Generator", "randomness"),
    (r"torch\.nn\.init", "architecture"),
    (r"^torch\.|forward$|__call__$", "forward"),
)
"""The aspect of a callable, by its dotted path; the first that fits."""

FIELDS = {
    ("parameter", "grad"): "gradients",
    ("parameter", "main_grad"): "gradients",
    ("parameter", "requires_grad"): "ownership",
    ("parameter", "names"): "ownership",
    ("param_group", "lr"): "schedule",
    ("optimizer", "parameters"): "ownership",
    ("param_group", "params"): "ownership",
    ("module", "training"): "mode",
    ("module", "called"): "forward",
    ("module", "attributes"): "architecture",
    ("module", "parameters"): "ownership",
}
"""The aspect of an entity's field; other fields have the aspect of their entity."""

ENTITIES = {
    "module": "settings",
    "scheduler": "schedule",
    "param_group": "settings",
    "scaler": "precision",
    "generator": "randomness",
    "batch": "data",
    "message": "communication",
    "wrapper": "communication",
}

ARGUMENTS = {
    "lr": "schedule",
    "weight_decay": "settings",
    "momentum": "settings",
    "loss": "values",
    "target": "data",
    "training": "mode",
    "dropout_p": "mode",
    "total_norm": "values",
    "grad_norm": "values",
    "reused": "clearing",
    "dropped": "clearing",
    "foreign": "clearing",
    "doubled": "ownership",
    "success": "stepping",
    "resumed": "checkpoint",
    "values_left_out": "checkpoint",
}
"""The aspect of a call's field, for any callable; other fields have the aspect of the callable."""


def aspects(rule: rules.Rule, vocabulary: rules.Vocabulary) -> frozenset[str]:
    """The aspects of the rule's claim: names of `INFLUENCES`, and `event:NAME` for a project's own.

    Never empty.
    """
    roots = roots_of_claim(rule.expect)
    found = {a for root in roots for part in _outside(root) for a in _of_part(part, vocabulary)}
    values = [part for root in roots for part in _inside(root)]
    values += [part for each in _values_among(rule, values) for part in walk(each)]
    inside = {a for part in values for a in _of_part(part, vocabulary)}
    if rule.across and _folds_over_ranks(rule):
        found.add("agreement")
    if _reads_a_change(rule):
        inside = (inside - NUMERIC) or {"update"}
        found = {"update" if aspect == "stepping" else aspect for aspect in found}
    if (inside | found) & NUMERIC:
        inside &= NUMERIC | PLACES
    found |= inside
    if "objective" in found:
        found.discard("forward")
    if _tells_apart(rule):
        found = (found - NUMERIC) or found
    if not found and rule.window.event is not None:
        found = set(_of_events(rule.window.event.events, vocabulary))
    return frozenset(found or {"values"})


def aspects_of_absence(rule: rules.Rule, vocabulary: rules.Vocabulary) -> frozenset[str]:
    """The aspects of an instance that one rank has and another lacks: those of the rule's calls,
    without the values read from them. For a rule on other subjects, they are the aspects of its
    claim.
    """
    types = (each.collection.type for each in rule.subjects)
    items = (each.item for each in types if isinstance(each, ListOf | SetOf))
    events = tuple(each.event for each in items if isinstance(each, CallOf))
    if not events:
        return aspects(rule, vocabulary)
    return frozenset({*_of_events(events, vocabulary), "agreement"})


def disturbs(cause: frozenset[str], effect: frozenset[str]) -> bool:
    """True if data flows from the first aspects to the second ones.

    Numbers of something (`digest(batch)`, `same(p.data)`, the logits of a loss) are disturbed by a
    cause that disturbs it, not by one that disturbs any number: a parameter without a gradient does
    not make batches repeat, and gradients that are added up do not put a softmax before a loss.
    """
    reach = set(cause)
    for aspect in cause:
        reach |= INFLUENCES.get(aspect, frozenset())
    return bool(reach & (effect - NUMERIC or effect))


def causal_place(found: frozenset[str]) -> int:
    """The distance of the aspects from a cause: the least of their places in the order of
    `INFLUENCES`.
    """
    order = list(INFLUENCES)
    own = order.index("forward")
    return min(order.index(a) if a in INFLUENCES else own for a in found)


def _values_among(rule: rules.Rule, read: list[Part]) -> list[rules.Expr]:
    """The collections of the tensors that are read by a variable of their own: `c.tensors`."""
    names = {part.name for part in read if isinstance(part, rules.Variable)}
    return [
        each.collection
        for each in rule.subjects
        if each.variable in names and not isinstance(item_of(each.collection.type), Entity | CallOf)
    ]


def _outside(part: Part) -> Iterator[Part]:
    """The part and its descendants, except features of tensors and the parts below these.

    Collections whose elements' fields are read are left out too: `models.parameters.group` says
    nothing of which parameters a model holds.
    """
    if isinstance(part, rules.Feature):
        return
    yield part
    for child in children(part):
        found = _outside(child)
        if isinstance(part, rules.Field) and _is_ownership(child):
            next(found)
        yield from found


def _is_ownership(part: Part) -> bool:
    return (
        isinstance(part, rules.Field)
        and _aspect_of_field(innermost(part.base.type), part.name) == "ownership"
    )


def _inside(part: Part) -> Iterator[Part]:
    """Features of tensors, and the values from which they are computed."""
    if isinstance(part, rules.Feature):
        yield from walk(part)
    else:
        for child in children(part):
            yield from _inside(child)


def _of_part(part: Part, vocabulary: rules.Vocabulary) -> Iterator[str]:
    match part:
        case rules.EventPattern(events=events):
            for aspect in _of_events(events, vocabulary):
                yield "stepping" if aspect == "update" else aspect
        case rules.Feature(name=name):
            yield FEATURES[name].aspect
        case rules.Field(base=base, name=name):
            yield from _of_field(base.type, name, vocabulary)
        case rules.Subjects(kind="state"):
            yield "checkpoint"  # whether an optimizer has its state is a matter of loading it
        case rules.Ambient(name=name) if name == "loss":
            yield "values"
        case rules.Ambient(name=name) if name.startswith("autocast"):
            yield "precision"


def _of_field(base: Type, name: str, vocabulary: rules.Vocabulary) -> Iterator[str]:
    base = innermost(base)
    aspect = _aspect_of_field(base, name)
    if aspect:
        yield aspect
    elif isinstance(base, CallOf):
        if name in ARGUMENTS:
            yield ARGUMENTS[name]
        else:
            yield from _of_events((base.event,), vocabulary)


def _aspect_of_field(base: Type, name: str) -> str | None:
    """The aspect of a field of an entity; None if the field has none, and for other types."""
    return (
        FIELDS.get((base.kind, name), ENTITIES.get(base.kind)) if isinstance(base, Entity) else None
    )


def _of_events(events: tuple[str, ...], vocabulary: rules.Vocabulary) -> Iterator[str]:
    for name in events:
        declared = vocabulary.event(name)
        for path in (name, *(declared.callables if declared else ())):
            aspect = next((a for pattern, a in CALLABLES if re.search(pattern, path)), None)
            if aspect:
                yield aspect
                break
        else:
            yield f"event:{name}"


def _folds_over_ranks(rule: rules.Rule) -> bool:
    return any(
        isinstance(part, rules.Transpose)
        or (isinstance(part, rules.Fold) and part.scope == "group")
        for part in parts_of_claim(rule.expect)
    )


def _tells_apart(rule: rules.Rule) -> bool:
    """True if the rule claims that values are distinct, so that their size does not matter."""
    return any(
        isinstance(part, rules.Fold) and part.name == "distinct"
        for part in parts_of_claim(rule.expect)
    )


def _reads_a_change(rule: rules.Rule) -> bool:
    """True if the rule claims that a tensor changed, or did not: `changed(p.data)`, or
    `digest(p.data) != first(digest(p.data))`.
    """
    if isinstance(rule.expect, rules.OnlyDuring):
        return rule.expect.change
    features = [p for p in parts_of_claim(rule.expect) if isinstance(p, rules.Feature)]
    earlier = rules.Old if rule.across else (rules.Old, rules.First)
    return (
        any(isinstance(p, earlier) for p in parts_of_claim(rule.expect))
        and bool(features)
        and all(feature.name == "digest" for feature in features)
    )
