"""Whether dotted paths name what torch has, and whether fields can be computed from a call."""

from __future__ import annotations

from dataclasses import dataclass

from tspec.diagnostics import did_you_mean
from tspec.resolve import torch_names
from tspec.resolve.findings import Findings
from tspec.source import Source, Span
from tspec.syntax import nodes

# What the recorder knows of every call, whatever its signature.
OF_EVERY_CALL = frozenset({"callable", "arguments", "inputs", "output"})

# What it knows of some: the learning rate of an optimizer, the loader of an iterator, the tensor
# and the group of a collective, under one name for all of them.
OF_SOME_CALLS = {
    "torch.optim.Optimizer.": frozenset({"lr", "optimizer"}),
    "torch.utils.data.": frozenset({"loader"}),
    "torch.distributed.": frozenset({"tensor", "group"}),
}

# Functions of a field's source that read Python objects, and the folds and features that do too.
SOURCE_FUNCTIONS = frozenset(
    {
        "abs",
        "round",
        "sqrt",
        "floor",
        "log",
        "exp",
        "for_parameters",
        "model_of",
        "names",
        "count",
        "sum",
        "min",
        "max",
        "mean",
        "any",
        "all",
        "numel",
        "norm",
        "float",
        "int",
        "ceil",
    }
)


def check_callable(path: str, place: tuple[Source, Span], findings: Findings) -> None:
    """Report a name under `torch.` that torch lacks, and a package spelt nearly like torch."""
    bare = path.removesuffix(".*")
    root = bare.split(".")[0]
    if root != "torch":
        hint = did_you_mean(root, ["torch"])
        if hint and root != "torch":
            findings.add("TS0112", f"there is no package `{root}`", place, hint=hint)
        return
    is_family = path != bare
    known = (
        torch_names.is_module(bare) or torch_names.is_class(bare)
        if is_family
        else torch_names.is_callable(bare)
    )
    if known:
        return
    what = "module or class" if is_family else "function, class or method"
    message = f"torch {torch_names.version()} has no {what} `{bare}`"
    findings.add("TS0112", message, place, hint=did_you_mean(bare, torch_names.near(bare)))


@dataclass(frozen=True, slots=True)
class Calls:
    """The callables of an event: what a field's source may name, and where to report what it may not.

    `axes` are the names of the groups of ranks: `group: group = ep`.
    """

    callables: tuple[str, ...]
    axes: frozenset[str]
    source: Source
    findings: Findings


def check_source(node: nodes.Field, calls: Calls) -> None:
    """Report a field that no call can give: no such parameter, or an unknown function or name."""
    names = _names_of(calls.callables)
    if node.value is not None:
        _check_names(node.value, names, calls)
    elif names is not None and node.name.text not in names:
        message = f"no parameter of {_listed(calls.callables)} is called `{node.name.text}`"
        hint = did_you_mean(node.name.text, names) or "say after `=` what it is computed from"
        calls.findings.add("TS0113", message, (calls.source, node.name.span), hint=hint)


def _check_names(value: nodes.Expr, names: set[str] | None, calls: Calls) -> None:
    source, findings = calls.source, calls.findings
    if isinstance(value, nodes.Call):
        function = nodes.dotted_text(value.function)
        if function not in SOURCE_FUNCTIONS:
            message = "a field is computed with one of tspec's own functions"
            hint = did_you_mean(function or "", SOURCE_FUNCTIONS)
            hint = (
                hint or f"there are {', '.join(f'`{name}`' for name in sorted(SOURCE_FUNCTIONS))}"
            )
            findings.add("TS0114", message, (source, value.function.span), hint=hint)
        for argument in value.arguments:
            _check_names(argument.value, names, calls)
    elif isinstance(value, nodes.Name):
        known = None if names is None else names | calls.axes | {"self", "result"}
        if known is not None and value.text not in known:
            message = f"no parameter of {_listed(calls.callables)} is called `{value.text}`"
            findings.add(
                "TS0113", message, (source, value.span), hint=did_you_mean(value.text, known)
            )
    else:
        for child in value.children():
            if isinstance(child, nodes.Expr):
                _check_names(child, names, calls)


def _names_of(callables: tuple[str, ...]) -> set[str] | None:
    """The parameters that some of the callables have, or None where one of them is not known."""
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
    shown = f"`{callables[0]}`"
    return shown if len(callables) == 1 else f"{shown} and {len(callables) - 1} more"
