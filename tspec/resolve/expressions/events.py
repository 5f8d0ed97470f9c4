"""Events where rules name them: `optimizer.step`, `forward(module: m)`, `torch.nn.ReLU.forward`."""

from __future__ import annotations

from difflib import SequenceMatcher

from tspec.builtin.events import EVENTS
from tspec.diagnostics import did_you_mean, with_article
from tspec.resolve import torch_names
from tspec.resolve.expressions.environment import Environment, Refused
from tspec.resolve.expressions.fields import fields_in_words, fields_of
from tspec.resolve.expressions.operators import named
from tspec.resolve.expressions.paths import Path, path_of
from tspec.resolve.findings import Findings
from tspec.resolve.names.callables import check_callable
from tspec.resolve.names.scope import SEPARATOR
from tspec.resolve.names.type_names import comparable
from tspec.resolve.program import rules, types
from tspec.resolve.program.types import CallOf, Entity, ListOf, item_of, plain
from tspec.syntax import nodes

_NEARLY_AN_EVENT = 0.8


def pattern(node: nodes.Expr, env: Environment) -> rules.EventPattern:
    """An event with its filters where an event is expected. Raises Refused."""
    if isinstance(node, nodes.Call):
        path = path_of(node.function)
        if path is not None and path.text() == "calls":
            hint = "leave `calls` out: an event stands here"
            env.refuse("TS0122", "`calls(...)` are calls, and no event", node.function, hint)
        events = (_event(path, node.function, env),)
        kind = CallOf(events[0])
        return rules.EventPattern(events, filters_of(node.arguments, kind, env))
    return rules.EventPattern((_event(path_of(node), node, env),))


def calls(node: nodes.Call, name: str, env: Environment) -> rules.Expr:
    """`calls(E, F, field: value)`. Raises Refused."""
    events = []
    options = []
    for argument in node.arguments:
        if argument.name is not None:
            options.append(argument)
        elif isinstance(argument.value, nodes.Call):
            hint = "filters stand beside the event: `calls(forward, module: m)`"
            env.refuse("TS0122", "an event's name stands here", argument.value, hint)
        else:
            events.append(_event(path_of(argument.value), argument.value, env))
    if not events:
        env.refuse("TS0127", "`calls` takes an event", node, "write `calls(forward)`")
    window = env.window
    if window is not None and window.kind == "during" and env.clause == "when":
        hint = "move it to `expect`, before `implies`"
        env.refuse("TS0160", "`when` is read as the call begins, before any in it", node, hint)
    kind = CallOf(SEPARATOR.join(dict.fromkeys(events)))
    filters = filters_of(tuple(options), kind, env)
    found = rules.EventPattern(tuple(dict.fromkeys(events)), filters)
    return rules.Calls(ListOf(kind), node.span, found)


def _event(path: Path | None, node: nodes.Expr, env: Environment) -> str:
    """The name of an event, or the dotted path of a callable."""
    if path is None:
        env.refuse("TS0122", "an event's name stands here", node)
    scope, text = env.scope, path.text()
    if text in scope.events:
        return text
    if path.words[0] in scope.aliases:
        inside = path.text().removeprefix(f"{path.words[0]}.")
        if inside in scope.aliases[path.words[0]].events:
            return inside
    if text in scope.unit.broken:
        raise Refused
    if text.startswith("torch."):
        unheard = Findings()
        check_callable(text, (scope.source, path.span()), unheard)
        if unheard.failed:
            env.findings.extend(unheard.all())
            raise Refused
        return text
    if len(path.words) == 1 or text in scope.elsewhere or _is_nearly(text, scope.events):
        nearest = scope.hint(text, list(scope.events))
        if text in env.variables or text in scope.ambient or text in scope.collections:
            nearest = f"`{text}` is a value; an event is called, such as `optimizer.step`"
        env.refuse("TS0122", f"there is no event `{text}`", path.span(), nearest)
    check_callable(text, (scope.source, path.span()), env.findings)
    return text


def _is_nearly(text: str, events: object) -> bool:
    """True if a dotted name is more likely a misspelt event than a callable of the user's."""
    assert hasattr(events, "__iter__")
    near = did_you_mean(text, events)
    if near is None:
        return False
    ratio = SequenceMatcher(None, text, near.split("`")[1]).ratio()
    return ratio >= _NEARLY_AN_EVENT


# --- filters ------------------------------------------------------------------------------------


def filters_of(
    given: tuple[nodes.Argument, ...], kind: Entity | CallOf, env: Environment
) -> tuple[rules.Filter, ...]:
    """`field: value` pairs on calls or subjects. Raises Refused, after all were looked at."""
    found = []
    failed = False
    seen: set[str] = set()
    for argument in given:
        try:
            found.append(_filter(argument, kind, env))
        except Refused:
            failed = True
            continue
        if found[-1].field in seen:
            env.report("TS0104", f"`{found[-1].field}:` is given twice", argument)
            failed = True
        seen.add(found[-1].field)
    if failed:
        raise Refused
    return tuple(found)


def _filter(argument: nodes.Argument, kind: Entity | CallOf, env: Environment) -> rules.Filter:
    known = fields_of(kind, env) or {}
    if argument.name is None:
        hint = "write `field: value`"
        env.refuse("TS0127", "a filter names the field that it compares", argument, hint)
    name = argument.name.text
    if name not in known:
        message = f"{with_article(kind)} has no field `{name}` to filter by"
        env.refuse(
            "TS0124", message, argument.name, did_you_mean(name, known) or fields_in_words(known)
        )
    field = plain(known[name])
    value = env.lower(argument.value, field)
    of = env.there(value)
    if field == types.CLASS:
        fits = types.CLASS in (of, item_of(of))
    elif field == types.TENSOR:
        hint = "compare a feature of it in `when`"
        env.refuse("TS0134", "a tensor is no value to compare with", argument, hint)
    else:
        fits = comparable(field, of)
    if not fits:
        message = f"`{name}` is {named(field)}, and never equal to {named(of)}"
        env.refuse("TS0133", message, argument.value)
    return rules.Filter(name, value)


def is_update(name: str) -> bool:
    """True if an event or callable updates the parameters, so that nothing after it can skip."""
    if name in EVENTS:
        return EVENTS[name].updates
    last = name.rpartition(".")[2]
    if name.startswith("torch."):
        owner = name.rpartition(".")[0]
        return last == "step" and torch_names.is_subclass(owner, "torch.optim.Optimizer")
    return last in ("step", "update") and not name.startswith(("scheduler", "lr_"))
