"""The layout of `equivalence`, `replay` and `test`."""

from __future__ import annotations

from tspec.syntax import nodes
from tspec.syntax.format_expressions import expression, quantity
from tspec.syntax.format_lines import block, expressions, short_block, value, words
from tspec.syntax.printer import Doc
from tspec.syntax.strings import quote


def equivalence(node: nodes.Equivalence) -> Doc:
    head = f"equivalence {node.name.text}"
    return block(head, node, node.clauses, _equivalence_clause, empty_lines=False)


def _equivalence_clause(node: nodes.Clause) -> Doc:
    match node:
        case nodes.UsesLayout():
            return f"layout {node.name.text}"
        case nodes.Reference():
            return short_block("reference", node, node.settings, _setting)
        case nodes.Candidate():
            return short_block("candidate", node, node.settings, _setting)
        case nodes.Sweep():
            return (f"sweep {node.name.text} in ", expression(node.values))
        case nodes.Require():
            return value("require", node.condition)
        case nodes.EqualWhen():
            return value("equal when", node.condition)
        case nodes.Cover():
            return f"cover {node.coverage.text}"
        case nodes.Run():
            return _run(node)
        case nodes.GeneratedInput():
            return (f"input {quote(node.name.value)} from ", expression(node.numbers))
        case nodes.Compare():
            return ("compare ", words(node.kinds))
        case nodes.Within():
            return value("within", node.tolerance)
        case nodes.Store():
            return f"store: {node.what.text}"
        case nodes.Localize():
            return "localize by rewriting inputs"
        case _:
            raise TypeError(f"no way is known to write {type(node).__name__}")


def _setting(node: nodes.Setting) -> Doc:
    return (f"{node.name.text}: ", expression(node.value))


def _run(node: nodes.Run) -> Doc:
    head = f"run {quantity(node.length)}"
    return head if node.origin is None else (head, " from ", expression(node.origin))


def replay(node: nodes.Replay) -> Doc:
    head = f"replay {node.name.text}"
    return block(head, node, node.clauses, _replay_clause, empty_lines=False)


def _replay_clause(
    node: nodes.Fix | nodes.Save | nodes.Run | nodes.Resume | nodes.ExpectAll,
) -> Doc:
    match node:
        case nodes.Fix():
            return ("fix ", words(node.names))
        case nodes.Save():
            return ("save ", words(node.names))
        case nodes.Run():
            return _run(node)
        case nodes.Resume():
            return f"resume at {node.step}"
        case nodes.ExpectAll():
            return ("expect ", expressions(node.claims))


def test(node: nodes.Test) -> Doc:
    return block(f"test {quote(node.title.value)}", node, node.clauses, _test_clause)


def _test_clause(node: nodes.UsesTrace | nodes.Events | nodes.Violates | nodes.Passes) -> Doc:
    match node:
        case nodes.UsesTrace():
            return f"trace {quote(node.path.value)}"
        case nodes.Events():
            return block(_events_head(node), node, node.steps, _step)
        case nodes.Violates():
            at = f" at step {_steps(node.at)}" if node.at else ""
            rank = "" if node.rank is None else f" on rank {node.rank}"
            subject = f" for {quote(node.subject.value)}" if node.subject else ""
            return f"violates {node.rule.text}{at}{rank}{subject}"
        case nodes.Passes():
            return f"passes {node.rule.text if node.rule else 'all others'}"


def _events_head(node: nodes.Events) -> str:
    if node.ranks is not None:
        return f"events on {node.ranks} rank{'' if node.ranks == 1 else 's'}"
    return f"events on mesh {node.mesh.text}" if node.mesh else "events"


def _steps(node: nodes.At | nodes.StepScript) -> str:
    return str(node.first) if node.first == node.last else f"{node.first}..{node.last}"


def _step(node: nodes.StepScript) -> Doc:
    return short_block(f"step {_steps(node)}", node, node.inside, _happening)


def _happening(node: nodes.Happening | nodes.Change | nodes.RankScript) -> Doc:
    match node:
        case nodes.RankScript():
            ranks = ", ".join(map(str, node.ranks))
            return short_block(f"rank {ranks}", node, node.inside, _happening)
        case nodes.Change():
            return (expression(node.target), " = ", expression(node.value))
        case nodes.Happening():
            head = expression(node.event)
            if not node.inside and not node.trivia.opening and not node.trivia.inner:
                return head
            return short_block(head, node, node.inside, _happening)
