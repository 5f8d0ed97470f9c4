"""How often each claim and each condition was true: every one is a rule, and the checker decides them.

Inference has no reading of the language of its own: candidates are invariants like any other, the columnar
checker decides them over each run with its queries, and what comes back is turned into one bitset a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tspec.infer.frames import Claim, Frame, invariant
from tspec.resolve.rules import Rule

Key = tuple[int, object]
"""Run and instance."""


@dataclass(frozen=True, slots=True)
class Column:
    """The truth of one claim or condition on the instances of its frame, as bitsets."""

    true: int
    false: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Columns by (frame, text, guard), and which instances belong to which run."""

    columns: dict[tuple[Frame, str, str | None], Column]
    runs: dict[Frame, tuple[int, ...]]
    """For each frame the set of instances of each run."""
    untyped: tuple[str, ...]
    """Candidates that are not well-typed in this vocabulary."""


def gather(claims: Sequence[Claim], runs: Sequence[Path], uses: Sequence[str]) -> Evidence:
    """Decide all claims and all conditions of their frames over all runs."""
    wanted = _wanted(claims)
    names = {f"c{index}": key for index, key in enumerate(wanted)}
    rules, untyped = _resolve(names, uses)
    verdicts = _decide(rules, runs)
    return _pack(names, verdicts, len(runs), untyped)


def _wanted(claims: Iterable[Claim]) -> tuple[tuple[Frame, str, str | None], ...]:
    keys: dict[tuple[Frame, str, str | None], None] = {}
    for claim in claims:
        keys[claim.frame, claim.expect, claim.guard] = None
        for condition in claim.frame.conditions:
            keys[claim.frame, condition, None] = None
    return tuple(keys)


def _resolve(
    names: dict[str, tuple[Frame, str, str | None]], uses: Sequence[str]
) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    from tspec.resolve import load_text

    header = ["edition 2026", "", "module candidates", "", *(f"use {use}" for use in uses), ""]
    blocks = {name: invariant(name, f, expect, guard) for name, (f, expect, guard) in names.items()}
    loaded = load_text("\n".join([*header, *blocks.values()]), name="candidates.tspec")
    if loaded.program is not None:
        return loaded.program.rules, ()
    bad = _blamed(
        blocks, len(header), [d.source.position(d.span.start).line for d in loaded.diagnostics]
    )
    good = [text for name, text in blocks.items() if name not in bad]
    again = load_text("\n".join([*header, *good]), name="candidates.tspec")
    if again.program is None:
        raise ValueError(f"candidates do not resolve: {again.diagnostics[0].message}")
    return again.program.rules, tuple(
        f"{blocks[name]}: {loaded.diagnostics[0].message}" for name in sorted(bad)
    )


def _blamed(blocks: dict[str, str], first: int, lines: Sequence[int]) -> set[str]:
    """The blocks in which errors lie; `first` lines come before the first block."""
    owner: dict[int, str] = {}
    line = first + 1
    for name, text in blocks.items():
        for _ in text.splitlines():
            owner[line] = name
            line += 1
    return {owner[at] for at in lines if at in owner}


def _decide(rules: Sequence[Rule], runs: Sequence[Path]) -> dict[str, list[tuple[Key, bool]]]:
    from tspec.check.columnar import check

    truth: dict[str, list[tuple[Key, bool]]] = {rule.name: [] for rule in rules}
    for run, path in enumerate(runs):
        for decided in check(rules, path, evidence=False).decided:
            if decided.verdict in ("holds", "violated"):
                i = decided.instance
                name = i.rule.rpartition(".")[2]
                truth[name].append(((run, (i.ranks, i.at, i.subjects)), decided.verdict == "holds"))
    return truth


def _pack(
    names: dict[str, tuple[Frame, str, str | None]],
    truth: dict[str, list[tuple[Key, bool]]],
    runs: int,
    untyped: tuple[str, ...],
) -> Evidence:
    places: dict[Frame, dict[Key, int]] = {}
    columns: dict[tuple[Frame, str, str | None], Column] = {}
    for name, key in names.items():
        place = places.setdefault(key[0], {})
        bits_true: list[int] = []
        bits_false: list[int] = []
        for instance, holds in truth.get(name, ()):
            (bits_true if holds else bits_false).append(place.setdefault(instance, len(place)))
        columns[key] = Column(_bitset(bits_true), _bitset(bits_false))
    by_run = {
        frame: tuple(
            _bitset([bit for (run, _), bit in place.items() if run == wanted])
            for wanted in range(runs)
        )
        for frame, place in places.items()
    }
    return Evidence(columns, by_run, untyped)


def _bitset(bits: Sequence[int]) -> int:
    if not bits:
        return 0
    packed = bytearray(max(bits) // 8 + 1)
    for bit in bits:
        packed[bit >> 3] |= 1 << (bit & 7)
    return int.from_bytes(packed, "little")
