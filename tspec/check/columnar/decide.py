"""The verdicts of a rule's instances, from the columns of `when` and of its claim.

The counterpart of `tspec.check.interpret.decide`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tspec.check.columnar.claims import CUT_OFF, NO_CALL, ClaimColumns, claim
from tspec.check.columnar.expressions import condition, read
from tspec.check.columnar.facts import Facts
from tspec.check.columnar.instances import instances
from tspec.check.columnar.relation import is_column
from tspec.check.columnar.scope import Frame, Instances, QueryScope
from tspec.check.columnar.shapes import REASONS, Cell, NoInstances, Unsupported
from tspec.check.columnar.sql import of_rank, text
from tspec.check.verdicts import InstanceCount
from tspec.plan.shown import ShownValue, reads
from tspec.reasons import DIFFER, LACKS, ONE_HOLDER, no_group
from tspec.resolve.program.queries import group_names
from tspec.resolve.program.rules import Contains, Holds, Ordered, Rule


@dataclass(frozen=True, slots=True)
class InstanceTable:
    """The instances of one rule as a table.

    Its columns are `verdict`, `reason`, `ranks`, `at0`, `at1`, `step`, `row`, `located`, and the
    subjects' keys `s0`, `s1`, and so on. `shown` are the values that findings show, as cells of the
    table `rows`, whose column `group` corresponds to `row`.
    """

    rule: Rule
    table: str
    kinds: tuple[str, ...]
    rows: str
    group: str
    shown: tuple[tuple[ShownValue, Cell], ...]


@dataclass(frozen=True, slots=True)
class UndecidedRule:
    """A rule that no query here decides, and why."""

    rule: Rule
    why: str


def frame(rule: Rule) -> object:
    """Rules of the same frame have the same instances, and are decided over one relation."""
    return rule.subjects, rule.across, rule.window


def decide(
    rules: Sequence[Rule], facts: Facts, evidence: bool = True
) -> list[InstanceTable | UndecidedRule]:
    """Decide all instances of rules of one frame, if there are any; errors of the engine are the caller's.

    Without `evidence`, the values that findings show are not read.
    """
    try:
        made = instances(rules[0], facts)
    except NoInstances:
        return []
    except Unsupported as error:
        return [UndecidedRule(rule, str(error)) for rule in rules]
    if rules[0].across and made.scope.group is None:
        return [_without_groups(rule, made, facts) for rule in rules]
    named: list[
        tuple[Rule, dict[str, str], tuple[tuple[ShownValue, Cell], ...]] | UndecidedRule
    ] = []
    for rule in rules:
        try:
            shown = _shown(rule, made.scope) if evidence else ()
            named.append((rule, _columns(rule, made), shown))
        except Unsupported as error:
            named.append(UndecidedRule(rule, str(error)))
    wanted = [
        name
        for each in named
        if not isinstance(each, UndecidedRule)
        for name in [
            *each[1].values(),
            *(sql for _, cell in each[2] for sql in (cell.value, cell.why)),
        ]
    ]
    table = made.scope.relation.table("rank", *filter(is_column, wanted))
    found: list[InstanceTable | UndecidedRule] = []
    for each in named:
        if isinstance(each, UndecidedRule):
            found.append(each)
            continue
        rule, columns, shown = each
        selected = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        rows = f"SELECT {selected} FROM {table}"
        subjects = len(made.labels)
        if made.scope.group is not None:
            decided = facts.table(_together(rule, rows, subjects))
        else:
            decided = f"({_alone(rows)})"
        group = made.scope.relation.key if made.scope.group is None else made.scope.group.key
        found.append(InstanceTable(rule, decided, made.kinds, table, group, shown))
    return found


def _columns(rule: Rule, made: Instances) -> dict[str, str]:
    """The inputs of a verdict, as columns of the relation."""
    scope, relation = made.scope, made.scope.relation
    due, due_why = _when(rule, scope)
    expected = _expect(rule, scope)
    broken_at = NO_CALL if rule.across else expected.broken_at
    columns = {
        "due": due, "due_why": due_why, "verdict": expected.verdict, "why": expected.why, "at0": "at0",
        "at1": made.place, "ranks": made.ranks, "rank": "rank",
        "step": "l_step" if rule.window.kind == "each" else "at0", "no_group": made.no_group,
        "row": relation.key, "located": f"coalesce({broken_at}, located)",
        **{f"s{n}": label for n, label in enumerate(made.labels)},
    }  # fmt: skip
    if scope.group is not None:
        group = scope.group
        columns |= {
            "row": group.key, "have": group.have, "lacking": group.lacking,
            "lack_rank": group.lack_rank, "unknown": group.unknown, "why_unknown": group.why_unknown,
        }  # fmt: skip
    return {name: relation.column(sql) for name, sql in columns.items()}


def _shown(rule: Rule, scope: QueryScope) -> tuple[tuple[ShownValue, Cell], ...]:
    """The values that a finding shows. A value that cannot be read alone is left out."""
    found = []
    for each in reads(rule):
        try:
            found.append((each, read(scope, each.expr, Frame())))
        except Unsupported:
            continue
    return tuple(found)


def _reason(why: str) -> str:
    names = " ".join(f"WHEN {number} THEN '{name}'" for number, name in REASONS.items())
    return f"CASE {why} {names} END"


def _without_groups(rule: Rule, made: Instances, facts: Facts) -> InstanceTable:
    """No rank has a group to look across: every instance is idle, and nothing need be read."""
    columns = {
        "at0": "at0", "at1": made.place, "ranks": made.ranks, "row": made.scope.relation.key,
        "step": "l_step" if rule.window.kind == "each" else "at0",
        **{f"s{n}": label for n, label in enumerate(made.labels)},
    }  # fmt: skip
    named = {name: made.scope.relation.column(sql) for name, sql in columns.items()}
    table = made.scope.relation.table("rank", *filter(is_column, named.values()))
    selected = ", ".join(f"{sql} AS {name}" for name, sql in named.items())
    reason = text(no_group(group_names(rule)))
    decided = f"(SELECT {selected}, 'idle' AS verdict, {reason} AS reason FROM {table})"
    return InstanceTable(rule, decided, made.kinds, table, made.scope.relation.key, ())


def _when(rule: Rule, scope: QueryScope) -> tuple[str, str]:
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


def _expect(rule: Rule, scope: QueryScope) -> ClaimColumns:
    if not isinstance(rule.expect, Holds):
        return claim(scope, rule.expect)
    cell: Cell = condition(scope, rule.expect.condition, Frame())
    verdict = f"CASE WHEN {cell.value} THEN 'holds' WHEN NOT {cell.value} THEN 'violated' ELSE 'unknown' END"
    why = scope.relation.column(_reason(cell.why))
    return ClaimColumns(scope.relation.column(verdict), why)


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
    grouped = f"""SELECT row, {kept}, arg_min(step, rank) AS step,
        first(located ORDER BY rank) AS located,
        any_value(no_group) AS no_group, any_value(have) AS have,
        any_value(lacking) AS lacking, any_value(lack_rank) AS lack_rank,
        any_value(unknown) AS unknown, any_value(why_unknown) AS why_unknown,
        bool_or(due = 'holds') AS some_due, bool_or(due = 'idle') AS some_idle,
        bool_or(due = 'unknown') AS some_unknown,
        arg_min(due_why, rank) FILTER (due = 'unknown') AS due_why,
        bool_or(verdict = 'violated') AS violated, bool_or(verdict = 'unknown') AS undecided,
        bool_or(verdict = 'holds') AS held, arg_min(why, rank) FILTER (verdict = 'unknown') AS why
        FROM ({rows}) GROUP BY row"""
    cases = (
        ("no_group", "idle", text(no_group(group_names(rule)))),
        ("have + lacking + unknown = 1", "idle", text(ONE_HOLDER)),
        ("some_due AND some_idle", "violated", text(DIFFER)),
        ("some_unknown", "unknown", "due_why"),
        ("unknown > 0", "unknown", "why_unknown"),
        ("NOT some_due", "idle", "NULL"),
        ("lacking > 0", "violated", of_rank("lack_rank", LACKS)),
        ("violated", "violated", "NULL"),
        ("undecided", "unknown", "why"),
        ("held", "holds", "NULL"),
    )
    verdicts = " ".join(f"WHEN {test} THEN '{verdict}'" for test, verdict, _ in cases)
    reasons = " ".join(f"WHEN {test} THEN {reason}" for test, _, reason in cases)
    kept_names = ", ".join(
        ["at0", "at1", "ranks", "step", "row", "located", *(f"s{n}" for n in range(subjects))]
    )
    return f"""SELECT {kept_names}, CASE {verdicts} ELSE 'idle' END AS verdict,
        CASE {reasons} END AS reason FROM ({grouped})"""


def counts_of(decisions: InstanceTable, facts: Facts) -> list[InstanceCount]:
    """The number of instances with each verdict, by ranks and reason."""
    rows = facts.ask(
        f"""SELECT ranks, verdict, coalesce(reason, ''), count(*) FROM {decisions.table}
            GROUP BY ALL ORDER BY ALL"""
    )
    name = decisions.rule.qualified
    return [
        InstanceCount(name, tuple(ranks), verdict, why, count)
        for ranks, verdict, why, count in rows
    ]


def truth_of(decisions: InstanceTable, facts: Facts) -> list[tuple[int, int, bool]]:
    """The first rank and a number of each instance that held or was violated, and whether it held.

    Rules with the same subjects, groups and window have the same numbers for the same instances.
    """
    keys = ", ".join(["ranks", "at0", "at1", *(f"s{n}" for n in range(len(decisions.kinds)))])
    return facts.ask(
        f"SELECT ranks[1], hash({keys}), verdict = 'holds' FROM {decisions.table} d "
        "WHERE verdict IN ('holds', 'violated')"
    )


def rows_of(decisions: InstanceTable, facts: Facts) -> list[tuple[Any, ...]]:
    """(at0, at1, ranks, step, row, verdict, reason, subjects' names...) of each instance, in order."""
    names, joins = [], ""
    for number, kind in enumerate(decisions.kinds):
        if kind == "subject":
            joins += f" LEFT JOIN subjects n{number} ON n{number}.sid = d.s{number}"
            names.append(f"n{number}.name")
        elif kind == "item":
            names.append(f"(d.s{number})::VARCHAR")
        else:
            names.append(f"'#' || d.s{number}")
    columns = ["d.at0", "d.at1", "d.ranks", "d.step", "d.row", "d.verdict", "d.reason", *names]
    return facts.ask(
        f"SELECT {', '.join(columns)} FROM {decisions.table} d{joins} "
        f"ORDER BY {', '.join(['d.ranks', 'd.at0', 'd.at1', *names])}"
    )
