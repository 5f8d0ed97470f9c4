"""The function of one rule: loops over its subjects, then its condition and claim in Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from tspec.builtin.kinds import PASSING
from tspec.plan.events import is_windows_call
from tspec.plan.model import Plan, RulePlan
from tspec.plan.shown import reads
from tspec.reasons import no_group
from tspec.resolve.program import rules as r
from tspec.resolve.program import types as t
from tspec.resolve.program.queries import group_names, variables
from tspec.resolve.program.types import holds_tensors, plain
from tspec.resolve.program.walk import operands
from tspec.targets.idle import (
    Flag,
    any_subject_code,
    choices_code,
    flag_tested_at_hook,
    kind_sent_by_group,
    kinds_sent_as_one,
)
from tspec.targets.joints import JointStatements, is_leaf
from tspec.targets.literals import comment, identifier, literal
from tspec.targets.scalars import Scalars, waits
from tspec.targets.wants import wants_name

INDENT = "    "
OWN_CALL = "None"
"""Python for the window's own call among the names of subjects."""


@dataclass(frozen=True, slots=True)
class Body:
    """The text of a rule's functions."""

    name: str
    """The name of the function that reads.

    `joint_` and this name is the function that decides from the values read.
    """
    lines: tuple[str, ...]
    joint: tuple[str, ...]
    read: tuple[tuple[str, bool], ...]
    """The texts of the values that a violated instance shows, and whether each is shown per member."""
    times: tuple[tuple[str, str], ...] = ()
    """Constants that it names, with the Python for them."""


@dataclass
class _Writer:
    scalars: Scalars
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    subjects: list[str | None] = field(default_factory=list)
    """The variable that holds the name of each subject; None for the window's own call, which has
    no name.
    """
    persistent: list[str] = field(default_factory=list)
    passing: list[str] = field(default_factory=list)
    loops: int = 0

    def put(self, line: str) -> None:
        self.lines.append(INDENT * self.depth + line)

    @property
    def skip(self) -> str:
        """The statement that leaves a choice of subjects."""
        return "continue" if self.loops else "return"


def body(plan: Plan, rule: RulePlan) -> Body:
    """The functions of one rule. Raises NotCompiled for an expression without generated code."""
    loops = any(not is_windows_call(one, rule.rule) for one in rule.rule.subjects)
    scalars = Scalars(plan, rule, hoisting=loops)
    idle = _idle(scalars)
    head = [*_head(scalars), *scalars.take_declarations(), *idle]
    # All other values are read only in a window that is not idle.
    whole = _Writer(scalars)
    _choices(whole)
    joint = JointStatements(rule.number, rule.rule.window.every)
    if rule.alone:
        _decide(whole)
        statements: tuple[str, ...] = ()
    else:
        statements = tuple(_leaves(whole, joint))
    head += [*_beginnings(rule), *scalars.take_declarations()]
    name = f"r{rule.number}_{identifier(rule.rule.qualified)}"
    read = tuple((each.text, each.each_member) for each in reads(rule.rule))
    lines = (*(INDENT + line for line in head), *whole.lines)
    return Body(name, lines, statements, read, tuple(joint.times))


def _choices(w: _Writer) -> None:
    """Loops over all choices of subjects, and the group of each."""
    rule = w.scalars.rule.rule
    early = _group_is_of_call(rule)
    if early is not None:
        w.scalars.variables.update(dict.fromkeys(early, "w.call"))
        _group(w)
        if early:
            w.put("rule.note_group(w, group)")
    _loops(w, rule.subjects)
    if rule.across and early is None:
        _group(w)


def _idle(scalars: Scalars) -> list[str]:
    """The statements for a window whose instances are all idle."""
    one, rule = scalars.rule, scalars.rule.rule
    found: list[str] = []
    tested = flag_tested_at_hook(one)
    if rule.across and tested is not Flag.UNGROUPED:
        found += _idle_if(Flag.UNGROUPED, scalars, f", {literal(no_group(group_names(rule)))}")
    if one.guard is None or tested is Flag.IDLE:
        return found
    if one.alone or (one.history and not rule.across and choices_code(one)):
        return [*found, *_idle_if(Flag.IDLE, scalars, "")]
    w = _Writer(scalars)
    if kinds := kinds_sent_as_one(one):
        _group(w)
        w.put(f"rule.take_idle(w, group, {literal(kinds)}, {choices_code(one)})")
    elif kind := kind_sent_by_group(one):
        w.put("found = {}")
        _choices(w)
        w.put(f"found.setdefault((group, why), []).append({w.subjects[0]})")
        w.depth = 1
        w.put(f"rule.take_idle_groups(w, {literal(kind)}, found)")
    else:
        _choices(w)
        w.put(f"rule.take(w, {_choice(w)}, None)")
    return [*found, f"if w.{Flag.IDLE}:", *w.lines, f"{INDENT}return"]


def _idle_if(flag: Flag, scalars: Scalars, reason: str) -> Iterator[str]:
    """Count the instances of an idle window of this rank alone."""
    yield f"if w.{flag}:"
    if chosen := choices_code(scalars.rule):
        yield f"{INDENT}rule.idle(w, {chosen}{reason})"
    else:
        w = _Writer(scalars)
        subjects, last = scalars.rule.rule.subjects, _last_elements(scalars.rule.rule)
        _loops(w, subjects if last is None else subjects[:-1])
        names = "".join(f"({one or OWN_CALL},), " for one in w.subjects)
        if last is not None:
            names += f"w.names({scalars.code(last, 'now')}),"
        w.put(f"rule.idle(w, ({names.rstrip()}){reason})")
        yield from w.lines
    yield f"{INDENT}return"


def _last_elements(rule: r.Rule) -> r.Expr | None:
    """The collection whose elements the last clause takes, if the window has no filter on them."""
    if not rule.subjects:
        return None
    last = rule.subjects[-1]
    has_no_names = is_windows_call(last, rule) or _takes_all(last.collection)
    return None if has_no_names or last.variable in _filtered(rule) else last.collection


def _head(s: Scalars) -> Iterator[str]:
    """The reads before the loops. The group of a call is needed even without subjects."""
    yield "now, end, was = w.now, w.end, w.was"
    columns = wants_name(s.rule, "now")
    if columns and any(holds_tensors(one.collection.type) for one in s.rule.rule.subjects):
        # At the end of a recording, no hook has declared the values to read.
        yield "if w.cut:"
        yield f"{INDENT}now.want({columns})"
    any_subject = any_subject_code(s.rule)
    if any_subject and not _group_is_of_call(s.rule.rule):
        yield f"if not now.{any_subject}:"
        yield f"{INDENT}return"


def _beginnings(rule: RulePlan) -> Iterator[str]:
    """Declare the fields of subjects that are read as first sampled."""
    first = wants_name(rule, "first")
    if first:
        yield f"end.begun.want({first})"
        yield f"was.begun.want({first})"


# --- subjects -----------------------------------------------------------------------------------


def _loops(w: _Writer, subjects: Sequence[r.For]) -> None:
    """A loop for each clause. The window's filters are tested as soon as the variables that they name are bound."""
    named = _filtered(w.scalars.rule.rule)
    last = max((n for n, one in enumerate(subjects) if one.variable in named), default=-1)
    if last < 0:
        _filter(w)
    for place, clause in enumerate(subjects):
        _loop(w, clause, place)
        if place == last:
            _filter(w)


def _filtered(rule: r.Rule) -> set[str]:
    """The variables that the filters of the window name."""
    filters = () if rule.window.event is None else rule.window.event.filters
    return {variable.name for one in filters for variable in variables(one.value)}


def _loop(w: _Writer, clause: r.For, place: int) -> None:
    s, rule, collection = w.scalars, w.scalars.rule.rule, clause.collection
    if is_windows_call(clause, rule):
        s.variables[clause.variable] = "w.call"
        w.subjects.append(None)
        return
    name, value = (
        f"n{place}_{identifier(clause.variable)}",
        f"e{place}_{identifier(clause.variable)}",
    )
    kind = _entity(collection)
    if _takes_all(collection):
        _subjects(w, clause, collection, (name, value))
        w.subjects.append(name)
    else:
        subject = f"k{place}_{identifier(clause.variable)}"
        w.put(f"for {value}, {subject} in w.elements({s.code(collection, 'now')}):")
        w.depth += 1
        s.variables[clause.variable] = value
        w.subjects.append(subject)
        if kind is not None:
            w.put(f"{name} = {value}.name")
            s.names[clause.variable] = (kind, name)
    w.loops += 1
    if kind is not None and kind not in PASSING:
        w.persistent.append(f"({literal(kind)}, {name})")
    elif not _is_calls(collection):
        w.passing.append(clause.variable)


def _takes_all(collection: r.Expr) -> TypeGuard[r.Subjects]:
    """True for all subjects of a kind that lasts, such as `parameters`."""
    return isinstance(collection, r.Subjects) and collection.kind not in PASSING


def _is_calls(collection: r.Expr) -> bool:
    item = getattr(plain(collection.type), "item", None)
    return isinstance(item, t.CallOf)


def _entity(collection: r.Expr) -> str | None:
    item = getattr(plain(collection.type), "item", None)
    return item.kind if isinstance(item, t.Entity) else None


def _subjects(w: _Writer, clause: r.For, collection: r.Subjects, names: tuple[str, str]) -> None:
    """A loop over all subjects of a kind, filters tested one by one."""
    s, kind, (name, _) = w.scalars, collection.kind, names
    only = _only(s.rule.rule, clause.variable)
    wanted = [(one, s.code(one.value, "now")) for one in collection.filters]
    if only is None:
        w.put(f"for {name} in w.subjects({literal(kind)}):")
    else:
        w.put(f"for {name} in w.only({literal(kind)}, {literal(only)}):")
    w.depth += 1
    s.variables[clause.variable] = f"Ref({literal(kind)}, {name})"
    s.names[clause.variable] = (kind, name)
    for one, code in wanted:
        found = f"{s.column('now', kind, one.field)}.get({name}, NOT_RECORDED)"
        if isinstance(one.value, r.Constant) and isinstance(one.value.value, bool):
            w.put(f"if {found} is not {code}:")
        else:
            w.put(f"if not now.matches({literal(one.field)}, {found}, {code}):")
        w.put(f"{INDENT}continue")


def _only(rule: r.Rule, variable: str) -> str | None:
    """The field of the window's call that must equal the subject of a clause, so that its loop is not needed; None if there is none."""
    event = rule.window.event
    for one in event.filters if event is not None else ():
        if isinstance(one.value, r.Variable) and one.value.name == variable:
            return one.field
    return None


# --- windows and groups -------------------------------------------------------------------------


def _filter(w: _Writer) -> None:
    s, rule = w.scalars, w.scalars.rule.rule
    event = rule.window.event
    if event is not None and event.filters:
        w.put(f"at = w.place({s.pattern(event, 'now')})")
        w.put("if at is None:")
        w.put(f"{INDENT}{w.skip}")
        w.put("w.at = at")


def _group_is_of_call(rule: r.Rule) -> tuple[str, ...] | None:
    """The variable of the window's call, if the group depends on this call alone; else None."""
    own = tuple(one.variable for one in rule.subjects if is_windows_call(one, rule))
    named = {
        each.name
        for one in rule.across
        if isinstance(one, r.GroupField)
        for each in variables(one.value)
    }
    return own if rule.across and named <= set(own) else None


def _group(w: _Writer) -> None:
    """The statement for the group of ranks of the rule."""
    s, rule = w.scalars, w.scalars.rule.rule
    clauses = "".join(
        f"{literal(one.name) if isinstance(one, r.Axis) else s.code(one.value, 'now')}, "
        for one in rule.across
    )
    w.put(f"group, why = w.group(({clauses.rstrip()}), {literal(group_names(rule))})")


def _subject_names(w: _Writer, own: str) -> str:
    """Python for the names of the subjects of one choice. `own` stands for the window's own call."""
    return "(" + "".join(f"{one or own}, " for one in w.subjects).rstrip() + ")"


# --- conditions and claims ----------------------------------------------------------------------


def _decide(w: _Writer) -> None:
    """Condition and claim of a rule that each instance decides by itself."""
    s, rule = w.scalars, w.scalars.rule.rule
    if rule.when is not None:
        frame = "was" if rule.window.kind == "during" else "end"
        code = s.code(rule.when, frame)
        w.put(f"when = {code}")
        w.put("expect = False")
        w.put("if when is True:")
        w.depth += 1
        _expect(w)
        w.depth -= 1
        when = "when"
    else:
        _expect(w)
        when = "True"
    names = _subject_names(w, 'f"#{w.at[1]}"')
    w.put(f"if rule.decide(w, {names}, {when}, expect):")
    w.depth += 1
    shown = "".join(f"({literal(each.text)}, {s.code(each.expr, 'end')}), " for each in reads(rule))
    w.put(f"rule.violated(w, {names}, ({shown.rstrip()}))")


def _expect(w: _Writer) -> None:
    """The result of the claim. Values that a message shows are read once, into variables."""
    s, expect = w.scalars, w.scalars.rule.rule.expect
    if isinstance(expect, r.Holds):
        eager = set(_eager(expect.condition))
        for each in reads(s.rule.rule):
            code = s.code(each.expr, "end")
            if each.expr in eager and "(" in code:
                name = f"v{len(s.bound)}_{identifier(each.text)[:40]}"
                w.put(f"{name} = {code}")
                s.bound["end", each.expr] = name
    w.put(f"expect = {_claim(s)}")


def _eager(expr: r.Expr) -> Iterator[r.Expr]:
    """The parts of a claim that are read whatever the others are."""
    yield expr
    for place, part in enumerate(operands(expr)):
        if not (isinstance(expr, (r.And, r.Or)) and waits(part, place)):
            yield from _eager(part)


def _claim(s: Scalars) -> str:
    """Python for the result of a claim: true, false, missing or idle."""
    expect = s.rule.rule.expect
    match expect:
        case r.Holds(condition):
            return s.code(condition, "end")
        case r.Contains(event):
            return f"contains(w, {s.pattern(event, 'now')})"
        case r.Ordered(events, edge):
            ordered = events if edge == "before" else tuple(reversed(events))
            return f"in_order(w, {_patterns(s, ordered)})"
        case r.OnlyDuring(subject, change, events):
            if not change:
                return f"call_only_during(w, {s.code(subject, 'end')}, {_patterns(s, events)})"
            inner = Scalars(s.plan, s.rule, s.variables)
            read = inner.code(r.Feature(t.INT, subject.span, "digest", subject), "at")
            return f"change_only_during(w, w.readings, lambda at: {read}, {_patterns(s, events)})"


def _patterns(s: Scalars, events: tuple[r.EventPattern, ...]) -> str:
    return ", ".join(f"({s.pattern(event, 'now')})" for event in events)


def _leaves(w: _Writer, joint: JointStatements) -> Iterator[str]:
    """Send the leaves of an instance; return the statements that decide from the leaves of all
    members.
    """
    s, rule = w.scalars, w.scalars.rule.rule
    whens, expects = "constant(members, True)", ""
    if rule.when is not None:
        whens = joint.lower(rule.when, "was" if rule.window.kind == "during" else "end")
    shown = reads(rule)
    joint.apart = frozenset(each.expr for each in shown)
    claim = None
    if isinstance(rule.expect, r.Holds):
        expects = joint.lower(rule.expect.condition, "end")
    lists = "".join(f"{joint.lower(each.expr, 'end')}, " for each in shown).rstrip()
    if not isinstance(rule.expect, r.Holds):
        claim = _claim(s)
        expects = joint.bind(f"leaf(members, {len(joint.leaves)})")
    codes = [_leaf(s, expr, frame) for frame, expr in joint.leaves]
    codes += [claim] if claim is not None else []
    leaves = "(" + "".join(f"{code}, " for code in codes).rstrip() + ")"
    w.put(f"leaves = {leaves}")
    w.put(f"rule.take(w, {_choice(w)}, leaves)")
    yield from (INDENT + line for line in joint.statements)
    yield f"{INDENT}return {whens}, {expects}, ({lists})"


def _choice(w: _Writer) -> str:
    """Python for one choice of subjects and group."""
    s, rule = w.scalars, w.scalars.rule.rule
    event = rule.window.event
    wanted = "".join(f"{s.code(one.value, 'now')}, " for one in event.filters) if event else ""
    persistent = "".join(f"{one}, " for one in w.persistent).rstrip()
    said = {
        "group": "group" if rule.across else "(w.rank,)",
        "no_group": "why" if rule.across else "",
        "subjects": _subject_names(w, OWN_CALL),
        "persistent": f"({persistent})" if persistent else "",
        "passing": "True" if w.passing else "",
        "wanted": f"({wanted.rstrip()})" if wanted else "",
    }
    return f"SubjectChoice({', '.join(f'{name}={code}' for name, code in said.items() if code)})"


def _leaf(s: Scalars, expr: r.Expr, frame: str) -> str:
    assert is_leaf(expr)
    return s.code(expr, frame)


def comment_of(rule: r.Rule) -> str:
    """`stdlib/health.tspec:21: std.health.loss_is_finite`, for a comment."""
    where = f"{rule.source.path}:{rule.source.position(rule.span.start).line}"
    return comment(f"{where}: {rule.qualified}")
