"""`mesh` and `dims`: the numbering of ranks, and the sizes of dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod

from tspec.diagnostics import Related, did_you_mean
from tspec.resolve.expressions.environment import Refused
from tspec.resolve.findings import Findings
from tspec.resolve.names.reporter import Reporter
from tspec.resolve.names.scope import Scope
from tspec.resolve.program.sharding import Axes, DimsDeclaration, MeshDeclaration
from tspec.syntax import nodes


def lower_mesh(node: nodes.Mesh, scope: Scope, findings: Findings) -> MeshDeclaration | None:
    """Type a mesh. None if it has errors, which are reported."""
    reporter = Reporter(scope, findings)
    axes = _axes(node.name, node.entries, reporter)
    regroups: dict[str, Axes] = {}
    for regroup in node.regroups:
        name = regroup.name.text
        if name in regroups:
            reporter.report("TS0104", f"the regrouping `{name}` is declared twice", regroup.name)
        again = _axes(regroup.name, regroup.entries, reporter)
        regroups[name] = again or ()
        if axes is None or again is None:
            continue
        ranks, others = prod(size for _, size in axes), prod(size for _, size in again)
        if ranks != others:
            message = f"`{name}` groups {others} ranks, and the mesh has {ranks}"
            reporter.report("TS0172", message, regroup.name, "both multiply to the number of ranks")
        for entry in regroup.entries:
            there, here = _stride(axes, entry.key.text), _stride(again, entry.key.text)
            if ranks == others and there and here and there != here:
                message = (
                    f"`{entry.key.text}` of `{name}` numbers the ranks as no axis of the mesh does"
                )
                hint = "an axis that both have is of one size and has the same ranks before it"
                reporter.report("TS0172", message, entry.key, hint)
    if axes is None or reporter.failed:
        return None
    return MeshDeclaration(node.name.text, scope.unit.name, axes, tuple(regroups.items()))


def _stride(axes: Axes, name: str) -> tuple[int, int] | None:
    """An axis's size, and the distance of neighbouring ranks on it."""
    stride = 1
    for axis, size in axes:
        if axis == name:
            return size, stride
        stride *= size
    return None


def _axes(name: nodes.Word, entries: Sequence[nodes.Entry], reporter: Reporter) -> Axes | None:
    """The sizes of the axes in their order, fastest first."""
    found = _entries(entries, reporter)
    order = found.pop("order", None)
    sizes: dict[str, int] = {}
    for axis, entry in found.items():
        value = entry.values[0]
        if len(entry.values) > 1 or not isinstance(value, nodes.Integer) or value.value < 1:
            hint = "a whole number from 1 on"
            reporter.report("TS0171", f"`{axis}` is no number of ranks", entry.values[0], hint)
        else:
            sizes[axis] = value.value
    if order is None:
        example = ", ".join(found) or "tp, dp"
        reporter.report(
            "TS0170", "no `order` says how ranks are numbered", name, f"add `order: {example}`"
        )
        return None
    listed: list[str] = []
    for value in order.values:
        text = nodes.dotted_text(value)
        if text is None or text not in found:
            shown = reporter.scope.source.slice(value.span)
            message = f"the order names `{shown}`, which has no size"
            reporter.report("TS0170", message, value, did_you_mean(shown, found))
        elif text in listed:
            reporter.report("TS0170", f"the order names `{text}` twice", value)
        else:
            listed.append(text)
    for axis in found:
        if axis not in listed:
            reporter.report("TS0170", f"the order leaves out `{axis}`", found[axis].key)
    return None if reporter.failed else tuple((axis, sizes[axis]) for axis in listed)


def _entries(entries: Sequence[nodes.Entry], reporter: Reporter) -> dict[str, nodes.Entry]:
    found: dict[str, nodes.Entry] = {}
    for entry in entries:
        key = entry.key.text
        if key in found:
            there = Related(found[key].key.span, "the first one")
            reporter.report("TS0104", f"`{key}` stands here twice", entry.key, None, (there,))
        else:
            found[key] = entry
    return found


# --- sizes --------------------------------------------------------------------------------------


def lower_dims(node: nodes.Dims, scope: Scope, findings: Findings) -> DimsDeclaration | None:
    """Evaluate the sizes of `dims`. None if there are errors, which are reported."""
    reporter = Reporter(scope, findings)
    entries = _entries(node.entries, reporter)
    sizes: dict[str, Fraction] = {}
    for name in entries:
        try:
            _size_of(name, entries, sizes, (reporter, ()))
        except Refused:
            continue
    if reporter.failed:
        return None
    return DimsDeclaration(
        node.name.text, scope.unit.name, tuple((k, int(v)) for k, v in sizes.items())
    )


_Way = tuple[Reporter, tuple[str, ...]]


def _size_of(
    name: str, entries: Mapping[str, nodes.Entry], sizes: dict[str, Fraction], way: _Way
) -> Fraction:
    reporter, open_names = way
    if name in sizes:
        return sizes[name]
    entry = entries[name]
    if name in open_names:
        reporter.report("TS0107", f"the size of `{name}` is made of itself", entry.key)
        raise Refused
    if len(entry.values) > 1:
        reporter.report("TS0173", f"`{name}` is one size", entry.values[1])
        raise Refused
    inside = (reporter, (*open_names, name))
    size = _reckon(entry.values[0], entries, sizes, inside)
    if size.denominator != 1 or size < 1:
        shown = float(size) if size.denominator != 1 else int(size)
        message = f"`{name}` is {shown:g}, and a size is a whole number from 1 on"
        reporter.report("TS0173", message, entry.values[0])
        raise Refused
    sizes[name] = size
    return size


def _reckon(
    node: nodes.Expr, entries: Mapping[str, nodes.Entry], sizes: dict[str, Fraction], way: _Way
) -> Fraction:
    reporter = way[0]
    match node:
        case nodes.Integer(value=value):
            return Fraction(value)
        case nodes.Name(text=text) if text in entries:
            return _size_of(text, entries, sizes, way)
        case nodes.Name(text=text):
            hint = did_you_mean(text, entries)
            reporter.report("TS0174", f"there is no size `{text}`", node, hint)
            raise Refused
        case nodes.Arithmetic(left=left, operator=operator, right=right):
            first = _reckon(left, entries, sizes, way)
            second = _reckon(right, entries, sizes, way)
            if operator == "/" and second == 0:
                reporter.report("TS0129", "nothing is divided by 0", right)
                raise Refused
            results = {"+": first + second, "-": first - second, "*": first * second}
            return first / second if operator == "/" else results[operator]
    reporter.report("TS0173", "a size is computed from numbers and other sizes", node)
    raise Refused
