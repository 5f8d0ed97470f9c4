"""Values as a script says them: numbers, words, subjects, lists, and tensors by their features."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tspec.builtin.features import FEATURES as rows
from tspec.diagnostics import did_you_mean
from tspec.resolve import torch_names
from tspec.resolve.expressions.fields import FEATURES
from tspec.resolve.expressions.operators import named
from tspec.resolve.expressions.place import Place
from tspec.resolve.expressions.tensors import RESULTS
from tspec.resolve.names.type_names import comparable
from tspec.resolve.program import rules, types
from tspec.resolve.program.scripts import Bare, ClassSaid, Entries, Named, Said, Several, TensorSaid
from tspec.resolve.program.types import Entity, MapOf, Optional, SetOf, Type, item_of, plain
from tspec.syntax import nodes

TENSOR_FEATURES: Mapping[str, Type] = {**FEATURES, **RESULTS}
"""All that can be said of a tensor."""


def said(node: nodes.Expr, of: Type, place: Place) -> Said:
    """The value that a script gives to something of a type. Raises Refused, after it was reported."""
    kind = plain(of)
    if isinstance(node, nodes.Name) and node.text == "absent":
        if isinstance(of, Optional):
            return Bare("absent", node.span)
        place.refuse("TS0133", f"this is {named(kind)}, and never absent", node)
    if kind == types.TENSOR:
        return _tensor(node, of, place)
    if isinstance(kind, Entity):
        return _subject(node, kind, place)
    number = _number(node) if kind in (types.FLOAT, types.SCALAR) else None
    if number is not None:
        return number
    item = item_of(kind)
    if isinstance(node, nodes.List | nodes.Set) and item is not None:
        return Several(
            tuple(said(each, item, place) for each in node.items), isinstance(kind, SetOf)
        )
    if isinstance(kind, MapOf):
        return _entries(node, kind, place)
    if kind == types.GROUP:
        return _group(node, place)
    return _constant(node, kind, place)


def _constant(node: nodes.Expr, kind: Type, place: Place) -> Said:
    found = place.lower(node, kind)
    of = place.there(found)
    if kind == types.CLASS and of == types.CLASS and isinstance(found, rules.Constant):
        return ClassSaid(torch_names.spellings(str(found.value)))
    if not comparable(kind, of) or (kind == types.INT and of == types.FLOAT):
        place.refuse("TS0133", f"this is {named(kind)}, and never {named(of)}", node)
    value = known(found)
    if value is None:
        hint = "a script says numbers, words, lists and subjects"
        place.refuse("TS0193", "this is nothing that is known before the script runs", node, hint)
    return float(value) if kind == types.FLOAT and isinstance(value, int) else value


def known(expr: rules.Expr) -> Said | None:
    """The value of an expression of constants; None for all else."""
    match expr:
        case rules.Constant(value=value):
            return value
        case rules.Negate(value=inner):
            number = known(inner)
            return -number if isinstance(number, int | float) else None
        case rules.ListDisplay(items=items):
            found = [known(item) for item in items]
            there = tuple(item for item in found if item is not None)
            return Several(there) if len(there) == len(found) else None
        case rules.Arithmetic(op=op, left=left, right=right):
            return _reckoned(op, known(left), known(right))
    return None


def _reckoned(op: str, left: Said | None, right: Said | None) -> Said | None:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    if op == "/":
        return left / right if right else None
    return left + right if op == "+" else left - right if op == "-" else left * right


def _number(node: nodes.Expr) -> float | None:
    """`nan`, `inf`, `-inf`."""
    if isinstance(node, nodes.Name) and node.text in ("nan", "inf"):
        return float(node.text)
    if isinstance(node, nodes.Negative) and isinstance(node.value, nodes.Name):
        return -math.inf if node.value.text == "inf" else None
    return None


def _entries(node: nodes.Expr, kind: MapOf, place: Place) -> Said:
    """`[entry("w", tensor(norm: 1.0))]`."""
    found: dict[str, Said] = {}
    for each in node.items if isinstance(node, nodes.List) else (node,):
        match each:
            case nodes.Call(
                function=nodes.Name(text="entry"),
                arguments=(
                    nodes.Argument(name=None, value=nodes.String(value=key)),
                    nodes.Argument(name=None, value=value),
                ),
            ):
                found[key] = said(value, kind.value, place)
            case _:
                hint = 'write `[entry("its key", 1), entry("another", 2)]`'
                place.refuse("TS0133", f"this is {named(kind)}", each, hint)
    return Entries(tuple(found.items()))


def _group(node: nodes.Expr, place: Place) -> Said:
    """An axis by its name, or the list of its ranks."""
    if isinstance(node, nodes.List):
        return Several(tuple(said(each, types.INT, place) for each in node.items))
    if isinstance(node, nodes.Name) and node.text in place.scope.axes:
        return node.text
    hint = "write an axis, such as `dp`, or the ranks, such as `[0, 1]`"
    place.refuse("TS0133", "this is no group of ranks", node, hint)


def _subject(node: nodes.Expr, kind: Entity, place: Place) -> Said:
    found = subject(node)
    if found is not None and found.kind == kind.kind:
        return found
    message = f"this is {named(kind)}"
    if found is None:
        place.lower(node, kind)  # says what is wrong with it, if it is no value at all
    else:
        message += f", and never a {found.kind}"
    place.refuse("TS0133", message, node, f'write `{kind.kind}("its name")`')


def subject(node: nodes.Expr) -> Named | None:
    """`parameter("head.weight")`, whatever the kind; None for all else."""
    match node:
        case nodes.Call(
            function=nodes.Name(text=kind),
            arguments=(nodes.Argument(name=None, value=nodes.String(value=name)),),
        ):
            return Named(kind, name)
    return None


# --- tensors ------------------------------------------------------------------------------------


def _tensor(node: nodes.Expr, of: Type, place: Place) -> Said:
    match node:
        case nodes.Name(text="changed"):
            return Bare("changed", node.span)
        case nodes.Call(function=nodes.Name(text="tensor"), arguments=arguments):
            return TensorSaid(tuple(_features(arguments, place)), node.span)
    number = _number(node)
    if number is None:
        found = place.lower(node, types.FLOAT)
        value = known(found)
        if place.there(found) not in (types.INT, types.FLOAT) or not isinstance(value, int | float):
            absent = ", `absent`" if isinstance(of, Optional) else ""
            hint = f"write `tensor(norm: 2.0)`, a number, `changed`{absent}"
            place.refuse("TS0133", "this is a tensor", node, hint)
        number = float(value)
    return scalar(number, node)


def scalar(number: float, node: nodes.Expr) -> TensorSaid:
    """The tensor that holds one number."""
    features: dict[str, Said] = {
        row.name: row.of_number(number) for row in rows.values() if row.of_number is not None
    }
    features["shape"] = Several(())
    return TensorSaid(tuple(features.items()), node.span)


def _features(arguments: tuple[nodes.Argument, ...], place: Place) -> list[tuple[str, Said]]:
    found: dict[str, Said] = {}
    for argument in arguments:
        if argument.name is None:
            place.refuse(
                "TS0127", "a tensor is said by its features", argument, "write `norm: 2.0`"
            )
        name = argument.name.text
        if name not in TENSOR_FEATURES:
            hint = did_you_mean(name, TENSOR_FEATURES)
            place.refuse("TS0121", f"a tensor has no feature `{name}`", argument.name, hint)
        if name in found:
            place.refuse("TS0104", f"`{name}:` is given twice", argument)
        found[name] = said(argument.value, TENSOR_FEATURES[name], place)
    return list(found.items())
