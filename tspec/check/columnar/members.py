"""The other ranks that should have an instance, and the state of the ranks without it.

The counterpart of `tspec.check.interpret.members`.
"""

from __future__ import annotations

from dataclasses import replace

from tspec.check.columnar.relation import is_column
from tspec.check.columnar.scope import GroupColumns, Instances
from tspec.check.columnar.sql import of_rank
from tspec.check.columnar.windows import is_constant, of_pattern, windows
from tspec.reasons import DIED, NO_WINDOW
from tspec.resolve.program.rules import Rule


def with_others(rule: Rule, made: Instances) -> Instances:
    """Add columns for folds over members, and for members without the instance.

    The latter are `lack_rank`, the first rank that lacks it; `lacking`, the number of such ranks;
    `unknown`, the number of ranks for which this is unknown; `why_unknown`, the reason of the first
    of these; and `have`, the number of ranks with the instance.
    """
    scope, relation = made.scope, made.scope.relation
    instance = relation.column(
        f"hash({', '.join(['at0', made.place, f'({made.ranks})::VARCHAR', *made.labels])})"
    )
    have = relation.column(f"count(*) OVER (PARTITION BY {instance})")
    # Columns of the place and the subjects are needed by name.
    named = [relation.computed(label) for label in (made.place, *made.labels)]
    open_filters = [f"f{n}" for n in _open_filters(rule)]
    table = relation.table(
        instance,
        have,
        "rank",
        "at0",
        *filter(is_column, [made.ranks, made.no_group]),
        *named,
        *open_filters,
    )
    lasting = [name for name, kind in zip(named[1:], made.kinds, strict=True) if kind == "subject"]
    place_only = any(kind in ("place", "item") for kind in made.kinds)
    facts = scope.facts
    absent = facts.table(
        f"""SELECT p.* FROM (
              SELECT inst, unnest(ranks) AS other, ranks, at0, at1{_named("v", lasting)}{_filters(rule)}
              FROM (SELECT {instance} AS inst, any_value({made.ranks}) AS ranks, any_value(at0) AS at0,
                      any_value({named[0]}) AS at1{_any("v", lasting)}{_any_filters(rule)}
                    FROM {table} WHERE NOT {made.no_group} AND {have} < len({made.ranks})
                    GROUP BY {instance})) p
            ANTI JOIN {table} t ON t.{instance} = p.inst AND t.rank = p.other"""
    )
    others = facts.table(
        f"""SELECT inst, count(*) FILTER (fate = 'lacks') AS lacking,
              min(other) FILTER (fate = 'lacks') AS lack_rank,
              count(*) FILTER (fate NOT IN ('lacks', 'none')) AS unknown,
              arg_min(fate, other) FILTER (fate NOT IN ('lacks', 'none')) AS why_unknown,
              min(other) FILTER (fate <> 'none') AS first_other
            FROM ({_fates(rule, made, absent, len(lasting), place_only)}) GROUP BY inst"""
    )
    lacking, lack_rank, unknown, why, first_other = relation.joined(
        f"LEFT JOIN {others} o ON o.inst = r.{instance}",
        (
            "coalesce(o.lacking, 0)",
            "o.lack_rank",
            "coalesce(o.unknown, 0)",
            "o.why_unknown",
            "o.first_other",
        ),
    )
    group = GroupColumns(instance, first_other, made.ranks, have, lacking, lack_rank, unknown, why)
    return replace(made, scope=replace(scope, group=group))


def _named(letter: str, names: list[str]) -> str:
    return "".join(f", {letter}{n}" for n, _ in enumerate(names))


def _any(letter: str, names: list[str]) -> str:
    return "".join(f", any_value({name}) AS {letter}{n}" for n, name in enumerate(names))


def _open_filters(rule: Rule) -> list[int]:
    pattern = rule.window.event
    if pattern is None:
        return []
    return [n for n, each in enumerate(pattern.filters) if not is_constant(each.value)]


def _filters(rule: Rule) -> str:
    return "".join(f", f{n}" for n in _open_filters(rule))


def _any_filters(rule: Rule) -> str:
    return "".join(f", any_value(f{n}) AS f{n}" for n in _open_filters(rule))


def _fates(rule: Rule, made: Instances, absent: str, lasting: int, place_only: bool) -> str:
    """Query `inst, other, fate`: `lacks`, `none` (no member), or why it cannot be known."""
    span = rule.window.span
    unit = {"epoch": "epoch", "run": "0"}.get(span or "", "step")
    joins, had = "", "true"
    for number in range(lasting):
        joins += f" LEFT JOIN firsts h{number} ON h{number}.rank = a.other AND h{number}.sid = a.v{number}"
        own = unit if unit == "0" else f"h{number}.{unit}"
        had += f" AND h{number}.sid IS NOT NULL AND {own} <= a.at0"
    alive = "e.any_finish" if unit == "0" else f"(e.any_finish OR e.{unit} > a.at0)"
    window = "true" if rule.window.kind == "calls" else _has_window(rule, made)
    died = of_rank("a.other", DIED)
    return f"""
      SELECT a.inst, a.other, CASE
          WHEN e.rank IS NULL THEN {died}
          WHEN NOT ({had}) THEN 'none'
          WHEN NOT {alive} THEN {died}
          WHEN {str(place_only).lower()} THEN 'none'
          WHEN {window} THEN 'lacks'
          ELSE {of_rank("a.other", NO_WINDOW)} END AS fate
      FROM {absent} a LEFT JOIN ends e ON e.rank = a.other{joins}"""


def _has_window(rule: Rule, made: Instances) -> str:
    """SQL: that rank has a window of the same place, for these subjects."""
    scope = made.scope
    if rule.window.event is None:
        found = windows(scope).table
        return f"EXISTS (SELECT 1 FROM {found} w WHERE w.rank = a.other AND w.at0 = a.at0 AND w.at1 = a.at1)"
    called = of_pattern(scope, rule.window.event)
    alike = "".join(f" AND w.f{n} = a.f{n}" for n, _ in called.filters)
    over = "k.e IS NOT NULL" if rule.window.kind == "after" else "true"
    return f"""(SELECT count(*) FROM {called.table} w JOIN calls k ON k.c = w.c
                WHERE k.rank = a.other AND k.b_step = a.at0 AND {over}{alike}) > a.at1"""
