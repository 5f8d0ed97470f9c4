"""Counts the instances in which each claim and each condition was true. Each is a rule, and the
checker decides it.

Inference does not interpret the language itself. Candidates are ordinary invariants, the columnar
checker decides them over each run with its queries, and each column of its result becomes a bitset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tspec.infer.candidates import resolve_each
from tspec.infer.heads import Claim, RuleHead, invariant
from tspec.resolve.program.rules import Rule

Key = tuple[int, object]
"""Run and instance."""

Candidate = tuple[RuleHead, str, str | None]
"""Head, text and guard of a claim or of a condition."""


def key_of(claim: Claim) -> Candidate:
    """The key of a claim's evidence."""
    return claim.head, claim.expect, claim.guard


@dataclass(frozen=True, slots=True)
class Column:
    """The truth of one claim or condition on the instances of its head, as bitsets."""

    true: int
    false: int


@dataclass(frozen=True, slots=True)
class ClaimEvidence:
    """Columns of claims and conditions, and the instances of each run."""

    columns: dict[Candidate, Column]
    """The claims that type."""
    runs: dict[RuleHead, tuple[int, ...]]
    """For each head the set of instances of each run."""
    untyped: dict[Candidate, str]
    """Candidates that do not type in this vocabulary, and why."""


def gather(claims: Sequence[Claim], runs: Sequence[Path], uses: Sequence[str]) -> ClaimEvidence:
    """Decide all claims and all conditions of their heads over all runs."""
    names = {f"c{index}": key for index, key in enumerate(_wanted(claims))}
    blocks = {
        name: invariant(name, head, expect, guard) for name, (head, expect, guard) in names.items()
    }
    rules, problems = resolve_each(blocks, uses)
    typed = {name: key for name, key in names.items() if name not in problems}
    untyped = {names[name]: problem for name, problem in problems.items()}
    return _pack(typed, _decide(typed, rules, runs), len(runs), untyped)


def _wanted(claims: Iterable[Claim]) -> tuple[Candidate, ...]:
    keys: dict[Candidate, None] = {}
    for claim in claims:
        keys[key_of(claim)] = None
        for condition in (*claim.head.conditions, *filter(None, [claim.witness])):
            keys[claim.head, condition, None] = None
    return tuple(keys)


def _decide(
    typed: dict[str, Candidate], rules: Sequence[Rule], runs: Sequence[Path]
) -> dict[str, list[tuple[Key, bool]]]:
    """For each rule the instances of all runs in which it was true or false."""
    from tspec.check.columnar.truth import truth

    found: dict[str, list[tuple[Key, bool]]] = {rule.name: [] for rule in rules}
    for run, (path, decided) in enumerate(zip(runs, truth(rules, runs), strict=True)):
        for name, instances in decided.of.items():
            found[name] += (((run, number), holds) for number, holds in instances)
        heads = {typed[rule.name][0] for rule in decided.failed}
        again = [rule for rule in rules if typed[rule.name][0] in heads]
        for name, others in _interpreted(again, run, path).items():
            found[name] = [each for each in found[name] if each[0][0] != run] + others
    return found


def _interpreted(rules: Sequence[Rule], run: int, path: Path) -> dict[str, list[tuple[Key, bool]]]:
    """The same, by whole instances. For rules of heads with a rule that no query can decide: the numbers
    of its instances are not known.
    """
    from tspec.check.columnar import check

    found: dict[str, list[tuple[Key, bool]]] = {rule.name: [] for rule in rules}
    for decided in check(rules, path, evidence=False).decided if rules else ():
        if decided.verdict in ("holds", "violated"):
            i = decided.instance
            key = run, (i.ranks, i.at, i.subjects)
            found[i.rule.rpartition(".")[2]].append((key, decided.verdict == "holds"))
    return found


def _pack(
    names: dict[str, Candidate],
    truth: dict[str, list[tuple[Key, bool]]],
    runs: int,
    untyped: dict[Candidate, str],
) -> ClaimEvidence:
    places: dict[RuleHead, dict[Key, int]] = {}
    columns: dict[Candidate, Column] = {}
    for name, key in names.items():
        place = places.setdefault(key[0], {})
        bits_true: list[int] = []
        bits_false: list[int] = []
        for instance, holds in truth.get(name, ()):
            (bits_true if holds else bits_false).append(place.setdefault(instance, len(place)))
        columns[key] = Column(_bitset(bits_true), _bitset(bits_false))
    by_run = {
        head: tuple(
            _bitset([bit for (run, _), bit in place.items() if run == wanted])
            for wanted in range(runs)
        )
        for head, place in places.items()
    }
    return ClaimEvidence(columns, by_run, untyped)


def _bitset(bits: Sequence[int]) -> int:
    if not bits:
        return 0
    packed = bytearray(max(bits) // 8 + 1)
    for bit in bits:
        packed[bit >> 3] |= 1 << (bit & 7)
    return int.from_bytes(packed, "little")
