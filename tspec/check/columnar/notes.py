"""Notes of a report beside verdicts: which ranks wait for which others."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.check.columnar.facts import Facts
from tspec.check.columnar.sql import texts

COLLECTIVES = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "gather", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "recv", "scatter", "send",
)  # fmt: skip
"""Last words of the names of events and callables in which ranks wait for each other."""


def waiting(facts: Facts) -> Iterator[str]:
    """For each collective that began and never ended: the ranks that wait, and the places of the
    other ranks.
    """
    word = "string_split(event, '.')[-1]"
    rows = facts.ask(
        f"""WITH named AS (SELECT rank, c, e, event, {word} AS word, b_step AS step,
                row_number() OVER (PARTITION BY rank, b_step, event ORDER BY c) AS n FROM calls
              WHERE {word} IN {texts(list(COLLECTIVES))}),
            stuck AS (SELECT *, row_number() OVER (PARTITION BY rank ORDER BY c) AS first
              FROM named WHERE e IS NULL)
            SELECT s.rank, s.event, s.n, s.step, o.rank, o.step, o.finished,
              max(p.e IS NULL AND p.c IS NOT NULL), arg_max(q.event, q.c), arg_max(q.n, q.c),
              arg_max(q.step, q.c), arg_max(q.e IS NULL, q.c), max(p.c IS NOT NULL)
            FROM stuck s JOIN ends o ON o.rank <> s.rank
            LEFT JOIN named p ON p.rank = o.rank AND p.step = s.step AND p.event = s.event AND p.n = s.n
            LEFT JOIN named q ON q.rank = o.rank
            WHERE s.first = 1 GROUP BY ALL ORDER BY s.rank, o.rank"""
    )
    waits: dict[str, list[str]] = {}
    for rank, event, n, step, other, last, finished, there, at, at_n, at_step, at_open, met in rows:
        said = f"rank {rank} waits in {event} #{n} of step {step}"
        waits.setdefault(said, [])
        if met and there:
            continue
        if finished:
            waits[said].append(f"rank {other} has finished")
        elif met:
            waits[said].append(f"rank {other} came back from it")
        elif at is not None and at_open:
            waits[said].append(f"rank {other} waits in {at} #{at_n} of step {at_step}")
        else:
            waits[said].append(f"rank {other} never came to it; its last record is of step {last}")
    for said, others in waits.items():
        yield f"{said}: {'; '.join(others) or 'so do all ranks that were recorded'}"
