"""The verdicts of a rule's instances, from the columns of `when` and of its claim.

The counterpart of `tspec.check.interpret.decide`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tspec.check.columnar.claims import CUT_OFF, claim
from tspec.check.columnar.expressions import condition
from tspec.check.columnar.facts import Facts
from tspec.check.columnar.instances import Instances, instances
from tspec.check.columnar.scope import Frame, Scope
from tspec.check.columnar.shapes import REASONS, Cell
from tspec.check.columnar.sql import text
from tspec.resolve.rules import Axis, Contains, Holds, Ordered, Rule


@dataclass(frozen=True, slots=True)
class Decisions:
    """The instances of one rule as a table: `verdict`, `reason`, `ranks`, `at0`, `at1`, `step`,

    and `s0`, `s1`, ... the subjects' keys, which are of `kinds`; `lead` is a row of the relation."""

    table: str
    kinds: tuple[str, ...]
    made: Instances


def decide(rule: Rule, facts: Facts) -> Decisions:
    """Decide all instances of a rule. Raises Unsupported if a query cannot."""
    made = instances(rule, facts)
    scope, relation = made.scope, made.scope.relation
    due, due_why = _when(rule, scope)
    verdict, why = _expect(rule, scope)
    step = "b_step" if False else ("at0" if rule.window.kind != "each" else "l_step")
    columns = {
        "due": due, "due_why": due_why, "verdict": verdict, "why": why, "at0": "at0",
        "at1": made.place, "ranks": made.ranks, "rank": "rank", "step": step,
        "no_group": made.no_group, "row": relation.key,
        **{f"s{n}": label for n, label in enumerate(made.labels)},
    }  # fmt: skip
    if scope.group is not None:
        group = scope.group
        columns |= {
            "inst": group.key, "have": group.have, "lacking": group.lacking,
            "lack_rank": group.lack_rank, "unknown": group.unknown, "why_unknown": group.why_unknown,
        }  # fmt: skip
    named = {name: relation.column(sql) for name, sql in columns.items()}
    table = relation.settle()
    rows = (
        "SELECT " + ", ".join(f"{sql} AS {name}" for name, sql in named.items()) + f" FROM {table}"
    )
    found = facts.table(
        _alone(rows) if scope.group is None else _together(rule, rows, len(made.labels))
    )
    return Decisions(found, made.kinds, made)


def _reason(why: str) -> str:
    names = " ".join(f"WHEN {number} THEN '{name}'" for number, name in REASONS.items())
    return f"CASE {why} {names} END"


def _when(rule: Rule, scope: Scope) -> tuple[str, str]:
    """Columns: `holds` (it is due), `idle` or `unknown`; and why it is unknown."""
    early = isinstance(rule.expect, Contains | Ordered)
    cut = "CASE WHEN e_at IS NULL THEN 'unknown' ELSE 'holds' END"
    if rule.when is None:
        return ("'holds'" if early else scope.relation.column(cut)), CUT_OFF
    during = rule.window.kind == "during"
    cell = condition(scope, rule.when, Frame("s" if during else "e"))
    true = "'holds'" if early or not during else cut
    value = (
        f"CASE WHEN {cell.value} THEN {true} WHEN NOT {cell.value} THEN 'idle' ELSE 'unknown' END"
    )
    reason = f"CASE WHEN {cell.value} IS NULL THEN {_reason(cell.why)} ELSE {CUT_OFF} END"
    if not during:
        value = f"CASE WHEN e_at IS NULL THEN 'unknown' ELSE {value} END"
        reason = f"CASE WHEN e_at IS NULL THEN {CUT_OFF} ELSE {reason} END"
    return scope.relation.column(value), scope.relation.column(reason)


def _expect(rule: Rule, scope: Scope) -> tuple[str, str]:
    if not isinstance(rule.expect, Holds):
        return claim(scope, rule.expect)
    cell: Cell = condition(scope, rule.expect.condition, Frame())
    verdict = f"CASE WHEN {cell.value} THEN 'holds' WHEN NOT {cell.value} THEN 'violated' ELSE 'unknown' END"
    return scope.relation.column(verdict), scope.relation.column(_reason(cell.why))


def _alone(rows: str) -> str:
    """Each row is an instance."""
    return f"""SELECT * EXCLUDE (due, due_why, verdict, why, no_group),
        CASE WHEN due = 'holds' THEN verdict ELSE due END AS verdict,
        CASE WHEN due = 'unknown' THEN due_why WHEN due = 'holds' AND verdict = 'unknown' THEN why END
          AS reason FROM ({rows})"""


def _together(rule: Rule, rows: str, subjects: int) -> str:
    """The rows of one instance, on each member, are decided together."""
    kept = ", ".join(
        f"any_value({name}) AS {name}"
        for name in ("at0", "at1", "ranks", *(f"s{n}" for n in range(subjects)))
    )
    axes = ", ".join(
        each.name if isinstance(each, Axis) else getattr(each.value, "name", "")
        for each in rule.across
    )
    grouped = f"""SELECT inst, {kept}, arg_min(step, rank) AS step, arg_min(row, rank) AS row,
        any_value(no_group) AS no_group, any_value(have) AS have,
        any_value(lacking) AS lacking, any_value(lack_rank) AS lack_rank,
        any_value(unknown) AS unknown, any_value(why_unknown) AS why_unknown,
        bool_or(due = 'holds') AS some_due, bool_or(due = 'idle') AS some_idle,
        bool_or(due = 'unknown') AS some_unknown,
        arg_min(due_why, rank) FILTER (due = 'unknown') AS due_why,
        bool_or(verdict = 'violated') AS violated, bool_or(verdict = 'unknown') AS undecided,
        bool_or(verdict = 'holds') AS held, arg_min(why, rank) FILTER (verdict = 'unknown') AS why
        FROM ({rows}) GROUP BY inst"""
    cases = (
        ("no_group", "idle", text(f"no group {axes}")),
        ("have + lacking + unknown = 1", "idle", "'one holder'"),
        ("some_due AND some_idle", "violated", "'members differ on when'"),
        ("some_unknown", "unknown", "due_why"),
        ("unknown > 0", "unknown", "why_unknown"),
        ("NOT some_due", "idle", "NULL"),
        ("lacking > 0", "violated", "'rank ' || lack_rank || ' lacks it'"),
        ("violated", "violated", "NULL"),
        ("undecided", "unknown", "why"),
        ("held", "holds", "NULL"),
    )
    verdicts = " ".join(f"WHEN {test} THEN '{verdict}'" for test, verdict, _ in cases)
    reasons = " ".join(f"WHEN {test} THEN {reason}" for test, _, reason in cases)
    kept_names = ", ".join(
        ["at0", "at1", "ranks", "step", "row", *(f"s{n}" for n in range(subjects))]
    )
    return f"""SELECT {kept_names}, CASE {verdicts} ELSE 'idle' END AS verdict,
        CASE {reasons} END AS reason FROM ({grouped})"""


def rows_of(decisions: Decisions, facts: Facts) -> list[tuple[Any, ...]]:
    """(at0, at1, ranks, step, row, verdict, reason, subjects' names...) of each instance."""
    names, joins = [], ""
    for number, kind in enumerate(decisions.kinds):
        if kind == "subject":
            joins += f" LEFT JOIN subjects n{number} ON n{number}.sid = d.s{number}"
            names.append(f"n{number}.name")
        elif kind == "item":
            names.append(f"(d.s{number})::VARCHAR")
        else:
            names.append(f"'#' || d.s{number}")
    columns = ", ".join(
        ["d.at0", "d.at1", "d.ranks", "d.step", "d.row", "d.verdict", "d.reason", *names]
    )
    return facts.ask(f"SELECT {columns} FROM {decisions.table} d{joins}")
