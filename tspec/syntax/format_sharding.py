"""The layout of `mesh` and `layout`."""

from __future__ import annotations

from tspec.syntax import nodes
from tspec.syntax.format_expressions import bracketed, comments_above, expression, trailing
from tspec.syntax.format_lines import block, expressions, listed
from tspec.syntax.printer import Doc
from tspec.syntax.strings import quote


def mesh(node: nodes.Mesh) -> Doc:
    lines: list[nodes.Entry | nodes.Regroup] = [*node.entries, *node.regroups]
    return block(f"mesh {node.name.text}", node, lines, _mesh_line)


def _mesh_line(node: nodes.Entry | nodes.Regroup) -> Doc:
    if isinstance(node, nodes.Regroup):
        return block(f"regroup {node.name.text}", node, node.entries, _mesh_line)
    return (f"{node.key.text}: ", expressions(node.values))


def layout(node: nodes.Layout) -> Doc:
    head = f"layout {node.name.text} on {node.mesh.text}{_axes('replicated', node.replicated)}"
    return block(head, node, node.clauses, _clause)


def _clause(node: nodes.Place | nodes.Tied | nodes.Stage) -> Doc:
    match node:
        case nodes.Place():
            return _place(node)
        case nodes.Tied():
            return f"tied {quote(node.left.value)} == {quote(node.right.value)}"
        case nodes.Stage():
            chunk = "" if node.chunk is None else f" chunk {node.chunk}"
            modules = listed(node.modules, lambda module: quote(module.value))
            return (f"stage {node.number}{chunk}: ", modules)


def _place(node: nodes.Place) -> Doc:
    head = f"{node.kind.text} {quote(node.pattern.value)}: "
    axes = _axes("partial", node.partial) + _axes("replicated", node.replicated)
    line: tuple[Doc, ...] = (head, _shape(node.shape), axes)
    if node.when is None:
        return line
    return (*line, " when ", expression(node.when.condition), *trailing(node.when))


def _axes(word: str, axes: tuple[nodes.Word, ...]) -> str:
    return f" {word} {', '.join(axis.text for axis in axes)}" if axes else ""


def _shape(node: nodes.Shape | nodes.Flat) -> Doc:
    if isinstance(node, nodes.Flat):
        return ("flat", _padding(node.padding), *map(_split, node.splits))
    return bracketed("[", node, [_dimension(each) for each in node.dimensions], "]")


def _dimension(node: nodes.Dimension) -> Doc:
    return (
        *comments_above(node),
        _size(node.size),
        _padding(node.padding),
        *map(_split, node.splits),
        *trailing(node),
    )


def _padding(factors: tuple[nodes.SizeName | nodes.SizeNumber, ...]) -> str:
    return f" padded to {' * '.join(map(_term, factors))}" if factors else ""


def _size(node: nodes.SizeName | nodes.SizeNumber | nodes.SizeSum | nodes.Product) -> Doc:
    if isinstance(node, nodes.Product):
        return bracketed("(", node, [_dimension(each) for each in node.dimensions], ")")
    if isinstance(node, nodes.SizeSum):
        first, *others = map(_size, node.terms)
        return (first, *((" + ", each) for each in others))
    return _term(node)


def _term(node: nodes.SizeName | nodes.SizeNumber) -> str:
    return node.text if isinstance(node, nodes.SizeName) else str(node.value)


def _split(node: nodes.Split) -> str:
    axis = node.axis.text if node.order is None else f"{node.order.text}({node.axis.text})"
    return f" / {axis}"
