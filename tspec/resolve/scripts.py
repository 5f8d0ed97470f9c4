"""`test`: that it names rules there are, and that its script could happen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tspec.diagnostics import Related, did_you_mean
from tspec.resolve import types
from tspec.resolve.declared import MeshDeclaration, TestDeclaration
from tspec.resolve.events import pattern
from tspec.resolve.expressions import lower
from tspec.resolve.fields import fields_of
from tspec.resolve.findings import Findings
from tspec.resolve.meshes import Reporter
from tspec.resolve.place import Place, Refused
from tspec.resolve.scope import Scope
from tspec.resolve.tensors import RESULTS
from tspec.resolve.type_names import plain
from tspec.resolve.types import Entity, Type
from tspec.syntax import nodes

Happenings = Sequence[nodes.Happening | nodes.Change | nodes.RankScript]
_NUMBERS = ("nan", "inf")


class _Test:
    """One test while it is checked."""

    def __init__(self, reporter: Reporter, findings: Findings, ranks: int) -> None:
        self.reporter = reporter
        self.findings = findings
        self.ranks = ranks
        self.place = Place(reporter.scope, findings, lower, "let", {})


def lower_test(
    node: nodes.Test,
    known: tuple[Mapping[str, str], Mapping[str, MeshDeclaration]],
    scope: Scope,
    findings: Findings,
) -> TestDeclaration | None:
    """The test, or None where something is wrong, which is reported.

    `known` are the visible rules, qualified by name, and the meshes.
    """
    names, meshes = known
    reporter = Reporter(scope, findings)
    script = next((each for each in node.clauses if isinstance(each, nodes.Events)), None)
    ranks = _ranks(script, meshes, reporter) if script else 0
    test = _Test(reporter, findings, ranks)
    if script is not None:
        _check_steps(script.steps, test)
    used = _check_outcomes(node, names, script, test)
    if reporter.failed:
        return None
    return TestDeclaration(node.title.value, scope.unit.name, tuple(used), scope.source, node)


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


def _check_steps(steps: Sequence[nodes.StepScript], test: _Test) -> None:
    last = 0
    for step in steps:
        if step.last < step.first:
            message = f"{step.first}..{step.last} holds no step"
            test.reporter.report("TS0191", message, step)
        elif step.first <= last:
            message = f"step {step.first} does not come after step {last}"
            test.reporter.report("TS0191", message, step, "steps are counted from 1 and only grow")
        last = max(last, step.last)
        _check_happenings(step.inside, test, None)


def _check_happenings(given: Happenings, test: _Test, on: nodes.RankScript | None) -> None:
    for each in given:
        match each:
            case nodes.Happening(event=event, inside=inside):
                try:
                    pattern(event, test.place)
                except Refused:
                    test.reporter.failed = True
                _check_happenings(inside, test, on)
            case nodes.RankScript(ranks=ranks, inside=inside):
                if on is not None:
                    test.reporter.report("TS0191", "a rank holds no other ranks", each)
                for rank in ranks:
                    if rank >= test.ranks:
                        has = f"it has {test.ranks}, counted from 0"
                        hint = f"write `events on {rank + 1} ranks`"
                        test.reporter.report(
                            "TS0191", f"there is no rank {rank}: {has}", each, hint
                        )
                _check_happenings(inside, test, each)
            case nodes.Change(target=target, value=value):
                _check_change(target, value, test)


def _check_change(target: nodes.Expr, value: nodes.Expr, test: _Test) -> None:
    """`parameter("head.weight").grad.norm = nan`: a field of a subject, or a feature of one."""
    place = test.place
    try:
        of = _target_type(target, test)
    except Refused:
        test.reporter.failed = True
        return
    words = (*_NUMBERS, "absent") if of in (types.FLOAT, types.INT) else ("absent",)
    if isinstance(value, nodes.Name) and value.text in words:
        return
    if isinstance(value, nodes.Negative) and isinstance(value.value, nodes.Name):
        value = value.value
        if value.text == "inf" and of == types.FLOAT:
            return
    try:
        found = place.lower(value, of)
    except Refused:
        test.reporter.failed = True
        return
    kind = place.there(found)
    whole = of == types.FLOAT and kind == types.INT
    if plain(of) != kind and not whole:
        test.reporter.report("TS0133", f"this is {plain(of)}, and never {kind}", value)


def _target_type(target: nodes.Expr, test: _Test) -> Type:
    place, scope = test.place, test.reporter.scope
    match target:
        case nodes.Attribute(value=owner, name=name) if (
            nodes.dotted_text(target) not in scope.ambient
        ):
            of = plain(_target_type(owner, test))
            known = dict(fields_of(of, place) or {})
            if of == types.TENSOR:
                known |= {str(feature): kind for feature, kind in RESULTS.items()}
            if name.text not in known:
                message = f"a {of} has no field `{name.text}`"
                place.refuse("TS0121", message, name, did_you_mean(name.text, known))
            return known[name.text]
        case nodes.Call(
            function=nodes.Name(text=kind), arguments=(nodes.Argument(value=nodes.String()),)
        ):
            if kind in scope.entities:
                return Entity(kind)
            hint = did_you_mean(kind, scope.entities)
            place.refuse("TS0120", f"there is no entity `{kind}`", target, hint)
    text = nodes.dotted_text(target)
    if text is not None and text in scope.ambient:
        return scope.ambient[text].type
    hint = 'write `parameter("head.weight").grad.norm = nan`, or a name of the context'
    place.refuse("TS0193", "this is nothing that a script can set", target, hint)
