"""The source of a field: its names are checked, and it becomes a tree of literals."""

from __future__ import annotations

from dataclasses import dataclass

from tspec.builtin.events import RETURNED
from tspec.builtin.field_functions import FIELD_FUNCTIONS, GENERAL
from tspec.diagnostics import did_you_mean
from tspec.resolve import torch_names
from tspec.resolve.findings import Findings
from tspec.resolve.program.declarations import FieldSource
from tspec.source import Source, Span
from tspec.syntax import nodes
from tspec.values import listed

# Values that the recorder knows of every call, whatever its signature.
OF_EVERY_CALL = frozenset({"callable", "arguments", "inputs", "output", RETURNED})

# Values that it knows of some calls: the learning rate of an optimizer, the loader of an iterator,
# the tensor and the group of a collective, under one name for all of them.
OF_SOME_CALLS = {
    "torch.optim.Optimizer.": frozenset({"lr", "optimizer"}),
    "torch.utils.data.": frozenset({"loader", "same_order", "rewritten", "samples_of_pass"}),
    "torch.distributed.": frozenset({"tensor", "given", "group", "op"}),
}


class _Unsupported(Exception):
    """A field cannot be computed from this part."""

    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.span = span
        self.hint = hint


def lower_source(node: nodes.Expr, source: Source, findings: Findings) -> FieldSource | None:
    """Lower an expression to a tree of literals. None if no job can compute it, which is reported."""
    try:
        return _tree(node)
    except _Unsupported as problem:
        findings.add("TS0114", str(problem), (source, problem.span), hint=problem.hint)
        return None


def _tree(node: nodes.Expr) -> FieldSource:
    match node:
        case nodes.Name():
            return ("name", node.text)
        case nodes.Attribute():
            return ("field", _tree(node.value), node.name.text)
        case nodes.Index():
            return ("index", _tree(node.value), _tree(node.index))
        case (
            nodes.Integer() | nodes.Float() | nodes.String() | nodes.Boolean() | nodes.Percentage()
        ):
            return ("literal", node.value)
        case nodes.Negative():
            return ("negate", _tree(node.value))
        case nodes.List():
            return ("list", tuple(map(_tree, node.items)))
        case nodes.Arithmetic():
            return (node.operator, _tree(node.left), _tree(node.right))
        case nodes.Call():
            return _call(node)
    message = "a field is computed from parameters, fields, literals, arithmetic and functions"
    raise _Unsupported(message, node.span)


def _call(node: nodes.Call) -> FieldSource:
    function = nodes.dotted_text(node.function)
    if function not in FIELD_FUNCTIONS:
        listed = ", ".join(f"`{name}`" for name in GENERAL)
        hint = (
            did_you_mean(function or "", FIELD_FUNCTIONS)
            or f"of numbers and collections there are {listed}"
        )
        message = "a field is computed with one of tspec's own functions"
        raise _Unsupported(message, node.function.span, hint)
    plain = tuple(_tree(each.value) for each in node.arguments if each.name is None)
    named = tuple(
        (each.name.text, _tree(each.value)) for each in node.arguments if each.name is not None
    )
    return ("call", function, plain, named)


# --- parameters ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventCallables:
    """The callables of an event, whose parameters the source of a field may name.

    `axes` are the names of groups of ranks: `group: group = ep`.
    """

    callables: tuple[str, ...]
    axes: frozenset[str]
    source: Source
    findings: Findings


def check_source(node: nodes.Field, calls: EventCallables) -> None:
    """Report a field that no call can give: no such parameter, or an unknown function or name."""
    names = _names_of(calls.callables)
    if node.value is not None:
        _check_names(node.value, names, calls)
    elif names is not None and node.name.text not in names:
        message = f"no parameter of {_listed(calls.callables)} is called `{node.name.text}`"
        hint = did_you_mean(node.name.text, names) or "say after `=` what it is computed from"
        calls.findings.add("TS0113", message, (calls.source, node.name.span), hint=hint)


def _check_names(value: nodes.Expr, names: set[str] | None, calls: EventCallables) -> None:
    if isinstance(value, nodes.Call):
        for argument in value.arguments:
            _check_names(argument.value, names, calls)
    elif isinstance(value, nodes.Name):
        known = None if names is None else names | calls.axes | {"self", "result"}
        if known is not None and value.text not in known:
            message = f"no parameter of {_listed(calls.callables)} is called `{value.text}`"
            hint = did_you_mean(value.text, known)
            calls.findings.add("TS0113", message, (calls.source, value.span), hint=hint)
    else:
        for child in value.children():
            if isinstance(child, nodes.Expr):
                _check_names(child, names, calls)


def _names_of(callables: tuple[str, ...]) -> set[str] | None:
    """The names that a source may read: parameters of the callables, and those known of every call.

    None if the parameters of a callable are not known.
    """
    names = set(OF_EVERY_CALL)
    for path in callables:
        if (
            not path.startswith("torch.")
            or path.endswith(".*")
            or not torch_names.is_callable(path)
        ):
            return None
        parameters = torch_names.parameters(path)
        if parameters is None or any(each.startswith("**") for each in parameters):
            return None
        names.update(parameters)
        for prefix, extra in OF_SOME_CALLS.items():
            if path.startswith(prefix):
                names |= extra
    return names or None


def _listed(callables: tuple[str, ...]) -> str:
    return listed([f"`{each}`" for each in callables], 1)
