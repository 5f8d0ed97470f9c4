"""Compile rules to the text of a Python module that checks them in a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from tspec.plan.build import build
from tspec.plan.model import Plan, RulePlan, UnopenedPlan
from tspec.resolve.program import rules as r
from tspec.resolve.program.documentation import explanation
from tspec.resolve.program.text import claim_text
from tspec.resources import stable
from tspec.targets.bodies import INDENT, Body, body, comment_of
from tspec.targets.hooks import hooks
from tspec.targets.layout import laid_out
from tspec.targets.literals import comment, literal
from tspec.targets.records import record_code
from tspec.targets.scalars import NotCompiled
from tspec.targets.wants import kept_field, want_list, wants
from tspec.targets.watched import watched
from tspec.targets.windows import window_patterns

if TYPE_CHECKING:
    import jinja2

TARGETS = ("torch", "megatron")
"""The targets. Each is a folder here, with its template and the code that runs in its jobs."""


class CannotCompile(Exception):
    """Some rules have no code for the target. The message gives each with its reason."""


def compile_program(
    program: r.Program,
    *,
    target: str = "torch",
    given: Mapping[str, object] | None = None,
    root: Path | None = None,
) -> str:
    """The Python text of the hooks of a program; the same rules give the same text in every folder.

    Files are named relative to `root`, the project's folder (the working folder if there is none).
    `given` are known values of the job: `{"tp": 1}` leaves out rules that look across `tp` alone.
    Raises CannotCompile for an unknown target and for rules without code.
    """
    if target not in TARGETS:
        raise CannotCompile(f"there is no target `{target}`; there is {', '.join(TARGETS)}")
    program = _with_stable_paths(program, (root or Path.cwd()).resolve())
    plan = build(program, given or {})
    bodies, refused = {}, []
    for one in plan.rules:
        try:
            bodies[one.number] = body(plan, one)
        except NotCompiled as why:
            refused.append(f"{comment_of(one.rule)} cannot be compiled: {why}")
    if refused:
        raise CannotCompile("\n".join(refused))
    return _render(target, program, plan, bodies, _given(program, given or {}))


def _with_stable_paths(program: r.Program, root: Path) -> r.Program:
    """The program with names of files that are the same on every machine."""
    named = {
        source: replace(source, path=stable(source.path, root))
        for source in {rule.source for rule in program.rules}
    }
    rules = tuple(replace(rule, source=named[rule.source]) for rule in program.rules)
    return replace(program, rules=rules)


def _given(program: r.Program, given: Mapping[str, object]) -> str:
    """The given values as a call; empty if there are none. Names that the vocabulary lacks decide nothing."""
    tables = (
        ("sizes", {group.name for group in program.vocabulary.groups}),
        ("values", {name.name for name in program.vocabulary.context}),
    )
    found = {
        table: {n: v for n, v in sorted(given.items()) if n in names} for table, names in tables
    }
    said = [f"{table}={_mapping(values)}" for table, values in found.items() if values]
    return f"CompiledFor({', '.join(said)})" if said else ""


def _mapping(values: Mapping[str, object]) -> str:
    return (
        "{"
        + ", ".join(f"{literal(name)}: {literal(value)}" for name, value in values.items())
        + "}"
    )


def _render(
    target: str, program: r.Program, plan: Plan, bodies: Mapping[int, Body], given: str
) -> str:
    points = hooks(plan, {number: one.name for number, one in bodies.items()})
    sources = sorted({one.rule.source.path for one in plan.rules})
    text = _template(target).render(
        files=[comment(source) for source in sources] or ["no rules"],
        patterns=[
            {
                "number": one.number,
                "events": literal(one.events),
                "fields": literal(one.fields),
                "deferred": one.deferred,
            }
            for one in plan.patterns
        ],
        kept=_fields(plan.kept),
        inside=_fields(plan.inside),
        alone=_fields(plan.alone),
        unopened=[(literal(event), _unopened(one)) for event, one in plan.unopened.items()],
        logged=literal(plan.logged),
        rules=[_rule(plan, one, bodies[one.number]) for one in plan.rules],
        hooks=[
            hook
            for group in (points.begins, points.ends, points.spans, points.passes)
            for _, hook in group
        ],
        begins=[(literal(event), hook.name) for event, hook in points.begins],
        ends=[(literal(event), hook.name) for event, hook in points.ends],
        spans=[(literal(span), hook.name) for span, hook in points.spans],
        passes=[(literal(event), hook.name) for event, hook in points.passes],
        calls=[(literal(event), found) for event, found in _calls(plan).items()],
        deferred=[(literal(event), window_patterns(plan, event)) for event in plan.deferred],
        passing=want_list(plan.passing),
        firsts=want_list(plan.firsts),
        kinds=literal(plan.kinds),
        lasting=[
            (literal(event), literal(one.filters), literal(one.fields), literal(one.first))
            for event, one in plan.lasting.items()
        ],
        given=given,
        watch=repr(watched(program.vocabulary, plan)),
    )
    return "\n".join(laid_out(line.rstrip() for line in text.splitlines())) + "\n"


def _unopened(one: UnopenedPlan) -> list[tuple[str, str]]:
    """The arguments of an `Unopened`, as literals."""
    tables = (("kept", one.kept), ("inside", one.inside), ("alone", one.alone))
    found = [(name, _table(fields)) for name, fields in tables if fields is not None]
    return [("rules", literal(one.rules)), *found]


def _table(fields: Mapping[str, tuple[tuple[str, ...], bool]]) -> str:
    """Field -> features, as one literal."""
    return "{" + ", ".join(f"{name}: {features}" for name, features in _features(fields)) + "}"


def _fields(
    kept: Mapping[str, Mapping[str, tuple[tuple[str, ...], bool]]],
) -> list[tuple[str, list[tuple[str, str]]]]:
    """Event -> field -> features, as literals."""
    return [(literal(event), _features(fields)) for event, fields in kept.items()]


def _features(fields: Mapping[str, tuple[tuple[str, ...], bool]]) -> list[tuple[str, str]]:
    """Field -> features of the tensors in it, as literals."""
    return [(literal(name), kept_field(*kept)) for name, kept in fields.items()]


def _calls(plan: Plan) -> dict[str, list[tuple[int, int]]]:
    """Event -> (rule, pattern) of the rules whose windows are its calls and have an end."""
    found: dict[str, list[tuple[int, int]]] = {}
    for one in plan.rules:
        event = one.rule.window.event
        if event is not None and one.rule.window.kind in ("during", "calls"):
            pattern = plan.pattern(event).number
            for name in sorted(set(event.events)):
                found.setdefault(name, []).append((one.number, pattern))
    return dict(sorted(found.items()))


def _rule(plan: Plan, one: RulePlan, text: Body) -> dict[str, object]:
    claim = _expectation(one.rule) or f"expect {claim_text(one.rule.expect)}"
    said = explanation(one.rule.doc) or " ".join(claim.split())
    return {
        "number": one.number,
        "name": text.name,
        "where": comment_of(one.rule),
        "doc": comment(said),
        "lines": text.lines or (f"{INDENT}pass",),
        "joint": text.joint,
        "times": text.times,
        "wants": list(wants(one)),
        "read": literal(text.read),
        "declared": record_code(plan, one, explanation(one.rule.doc)),
    }


def _expectation(rule: r.Rule) -> str:
    """The description of a rule without documentation: the text of its claim."""
    expect = rule.spans.expect
    return "" if expect is None else " ".join(rule.source.slice(expect).split())


@cache
def _template(target: str) -> jinja2.Template:
    """The template of a target, which fills the blocks of the shared one."""
    import jinja2  # late: `tspec fmt` does without it

    def read(name: str) -> str:
        return files("tspec.targets").joinpath(name).read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template(f"{target}/hooks.py.j2")
