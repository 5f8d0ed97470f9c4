"""`test`: that it names rules there are, and that its script could happen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tspec.diagnostics import Related, did_you_mean
from tspec.resolve.expressions.environment import Environment
from tspec.resolve.expressions.lower import lower
from tspec.resolve.findings import Findings
from tspec.resolve.names.reporter import Reporter
from tspec.resolve.names.scope import Scope
from tspec.resolve.program.declarations import ExpectedOutcome, TestDeclaration, TestRecording
from tspec.resolve.program.scripts import Script, Steps
from tspec.resolve.program.sharding import MeshDeclaration
from tspec.resolve.scripts.statements import ScriptContext, statements
from tspec.syntax import nodes


class _Test:
    """One test while it is checked."""

    def __init__(self, reporter: Reporter, findings: Findings, ranks: int) -> None:
        self.reporter = reporter
        self.ranks = ranks
        self.context = ScriptContext(Environment(reporter.scope, findings, lower, "let", {}), ranks)


def lower_test(
    node: nodes.Test,
    known: tuple[Mapping[str, str], Mapping[str, MeshDeclaration]],
    scope: Scope,
    findings: Findings,
) -> TestDeclaration | None:
    """Type a test. None if it has errors, which are reported.

    `known` are the visible rules, qualified by name, and the meshes.
    """
    names, meshes = known
    reporter = Reporter(scope, findings)
    script = next((each for each in node.clauses if isinstance(each, nodes.Events)), None)
    ranks = _ranks(script, meshes, reporter) if script else 0
    test = _Test(reporter, findings, ranks)
    performed = None
    if script is not None:
        mesh = meshes.get(script.mesh.text) if script.mesh else None
        performed = Script(ranks, _axes(mesh, ranks), _steps(script.steps, test))
    used = _check_outcomes(node, names, script, test)
    unread = any(
        clause.rule is not None and clause.rule.text not in names
        for clause in node.clauses
        if isinstance(clause, nodes.Violates | nodes.Passes)
    )
    if unread or reporter.failed or test.context.failed:
        return None
    outcomes = tuple(
        _outcome(clause, names)
        for clause in node.clauses
        if isinstance(clause, nodes.Violates | nodes.Passes)
    )
    seen = tuple(dict.fromkeys(names.values()))
    return TestDeclaration(
        node.title.value,
        scope.unit.name,
        tuple(used),
        scope.source,
        node.title.span,
        performed or _recording(node),
        outcomes,
        seen,
    )


def _recording(node: nodes.Test) -> TestRecording:
    found = next((each for each in node.clauses if isinstance(each, nodes.UsesTrace)), None)
    return (
        TestRecording("", node.title.span)
        if found is None
        else TestRecording(found.path.value, found.span)
    )


def _outcome(clause: nodes.Violates | nodes.Passes, names: Mapping[str, str]) -> ExpectedOutcome:
    rule = names[clause.rule.text] if clause.rule else None
    if isinstance(clause, nodes.Passes):
        return ExpectedOutcome(rule, False, clause.span)
    steps = (clause.at.first, clause.at.last) if clause.at else None
    subject = clause.subject.value if clause.subject else None
    return ExpectedOutcome(rule, True, clause.span, steps, clause.rank, subject)


def _ranks(script: nodes.Events, meshes: Mapping[str, MeshDeclaration], reporter: Reporter) -> int:
    if script.mesh is not None:
        mesh = meshes.get(script.mesh.text)
        if mesh is not None:
            return mesh.world
        hint = did_you_mean(script.mesh.text, meshes)
        reporter.report("TS0175", f"there is no mesh `{script.mesh.text}`", script.mesh, hint)
        return 0
    if script.ranks is not None and script.ranks < 1:
        reporter.report("TS0191", "a job has one rank or more", script)
    return script.ranks if script.ranks is not None else 1


# --- outcomes -----------------------------------------------------------------------------------


def _check_outcomes(
    node: nodes.Test, names: Mapping[str, str], script: nodes.Events | None, test: _Test
) -> list[str]:
    used = []
    violated: dict[str, nodes.Word] = {}
    reporter = test.reporter
    for clause in node.clauses:
        if not isinstance(clause, nodes.Violates | nodes.Passes) or clause.rule is None:
            continue
        name = clause.rule.text
        if name not in names:
            if name not in reporter.scope.unit.broken:
                hint = did_you_mean(name, names) or "is a `use` missing?"
                reporter.report("TS0190", f"there is no rule `{name}`", clause.rule, hint)
            continue
        used.append(names[name])
        if isinstance(clause, nodes.Violates):
            violated.setdefault(name, clause.rule)
            _check_place(clause, script, test)
        elif name in violated:
            there = Related(violated[name].span, "here it is violated")
            message = f"`{name}` is violated and passes"
            reporter.report("TS0192", message, clause.rule, None, (there,))
    return list(dict.fromkeys(used))


def _check_place(clause: nodes.Violates, script: nodes.Events | None, test: _Test) -> None:
    if clause.at is not None and clause.at.last < clause.at.first:
        message = f"{clause.at.first}..{clause.at.last} holds no step"
        test.reporter.report("TS0191", message, clause.at)
    if script is None:
        return
    last = max((step.last for step in script.steps), default=0)
    if clause.at is not None and clause.at.last > last:
        message = f"the script ends with step {last}"
        test.reporter.report("TS0191", message, clause.at)
    if clause.rank is not None and clause.rank >= test.ranks:
        message = f"the script has no rank {clause.rank}: it has {test.ranks}, counted from 0"
        test.reporter.report("TS0191", message, clause)


# --- scripts ------------------------------------------------------------------------------------


def _steps(given: Sequence[nodes.StepScript], test: _Test) -> tuple[Steps, ...]:
    last = -1
    found = []
    for step in given:
        if step.last < step.first:
            message = f"{step.first}..{step.last} holds no step"
            test.reporter.report("TS0191", message, step)
        elif step.first <= last:
            message = f"step {step.first} does not come after step {last}"
            test.reporter.report("TS0191", message, step, "steps are counted from 1 and only grow")
        last = max(last, step.last)
        found.append(Steps(step.first, step.last, statements(step.inside, test.context)))
    return tuple(found)


def _axes(mesh: MeshDeclaration | None, ranks: int) -> Mapping[str, tuple[tuple[int, ...], ...]]:
    """The peers of each rank on each axis of the mesh. Without a mesh all ranks are on `dp`."""
    world = tuple(range(ranks))
    if mesh is None:
        return {"dp": (world,) * ranks} if ranks > 1 else {}
    found: dict[str, tuple[tuple[int, ...], ...]] = {}
    for axes in (mesh.axes, *(again for _, again in mesh.regroups)):
        stride = 1
        for axis, size in axes:
            found.setdefault(axis, tuple(_peers(rank, stride, size) for rank in world))
            stride *= size
    return found


def _peers(rank: int, stride: int, size: int) -> tuple[int, ...]:
    """The ranks that differ from a rank in one coordinate only."""
    own = rank // stride % size
    return tuple(rank + (place - own) * stride for place in range(size))
