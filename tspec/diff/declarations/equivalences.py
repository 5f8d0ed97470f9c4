"""Changes of an equivalence clause by clause: which ask for more than before, which for less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from tspec.diff.changes import ChangedPart, ChangeKind, PartName
from tspec.diff.declarations import tolerances
from tspec.resolve.program.queries import conjuncts
from tspec.resolve.program.rules import Expr
from tspec.resolve.program.text import text
from tspec.resolve.program.trials import EquivalenceDeclaration, Setting

COVERED = ("pairs", "triples", "all")
"""From the fewest configurations to all; without `cover` all are compared."""
TELLS_NOTHING_ELSE: Sequence[PartName] = ("localize",)
"""Clauses that change no verdict."""


def changed_clauses(
    old: EquivalenceDeclaration,
    new: EquivalenceDeclaration,
    lines: tuple[Mapping[str, str], Mapping[str, str]],
) -> Iterator[ChangedPart]:
    """Each clause that means something else; `lines` are the clauses of both as they are written, by their keys.

    `loosened`: of two runs that agreed before, no pair differs now. `tightened`: the other way round.
    """
    for part, key, change in _changes(old, new):
        if change != "equivalent":
            yield ChangedPart(part, change, *(_said(each, key) for each in lines))


def relation(parts: Sequence[ChangedPart]) -> ChangeKind:
    """The direction of an equivalence's change, from the directions of its clauses."""
    match sorted({each.change for each in parts if each.part not in TELLS_NOTHING_ELSE}):
        case []:
            return "equivalent"
        case ["loosened"]:
            return "loosened"
        case ["tightened"]:
            return "tightened"
        case [*ways] if "changed" not in ways:
            return "incomparable"
    return "changed"


def _changes(
    old: EquivalenceDeclaration, new: EquivalenceDeclaration
) -> Iterator[tuple[PartName, str, str]]:
    """For each clause: its name, the key of its lines, and the direction of its change."""
    layouts = [each.layout.name if each.layout else "" for each in (old, new)]
    yield "layout", "layout", _same(*layouts)
    yield "reference", "reference", _same(_settings(old.reference), _settings(new.reference))
    yield "candidate", "candidate", _same(_settings(old.candidate), _settings(new.candidate))
    yield from _of_sweeps(old, new)
    # Fewer conditions allow more configurations, so more is compared. The same applies to pairs
    # that have to agree.
    yield "require", "require", _of_sets(_conditions(new.require), _conditions(old.require))
    pairs = _conditions(new.equal_when), _conditions(old.equal_when)
    yield "equal when", "equal when", _of_sets(*pairs)
    covers = (COVERED.index(each.cover or "all") for each in (old, new))
    yield "cover", "cover", _of_numbers(*covers)
    yield "run", "run", _of_runs(old, new)
    yield from _of_inputs(old, new)
    yield "compare", "compare", _of_sets(set(old.compare), set(new.compare))
    yield "within", "within", tolerances.order(old.within, new.within)
    # The tolerance of a sketch is raised by the error of its estimate.
    yield "store", "store", _of_numbers(new.sketched, old.sketched)
    traced = {(False, True): "added", (True, False): "removed"}
    yield "localize", "localize", traced.get((old.localize, new.localize), "equivalent")


def _of_sweeps(
    old: EquivalenceDeclaration, new: EquivalenceDeclaration
) -> Iterator[tuple[PartName, str, str]]:
    values = [
        {each.name: [value.value for value in each.values] for each in one.sweeps}
        for one in (old, new)
    ]
    for name in dict.fromkeys([*values[0], *values[1]]):
        before, after = (each.get(name) for each in values)
        if before is None or after is None:
            change = "changed"
        elif new.reference is None and before[:1] != after[:1]:
            change = "changed"  # the first configuration is a reference
        else:
            change = _of_sets(set(before), set(after))
        yield "sweep", f"sweep {name}", change


def _of_runs(old: EquivalenceDeclaration, new: EquivalenceDeclaration) -> str:
    if old.origin != new.origin or (old.length is None) != (new.length is None):
        return "changed"
    if old.length is None or new.length is None or old.length.unit != new.length.unit:
        return _same(old.length, new.length)
    return _of_numbers(old.length.count, new.length.count)


def _of_inputs(
    old: EquivalenceDeclaration, new: EquivalenceDeclaration
) -> Iterator[tuple[PartName, str, str]]:
    before, after = ({each.name: each.numbers for each in one.inputs} for one in (old, new))
    for name in dict.fromkeys([*before, *after]):
        yield "input", f"input {name}", _same(before.get(name), after.get(name))


def _same(old: object, new: object) -> str:
    return "equivalent" if old == new else "changed"


def _of_numbers(old: int, new: int) -> str:
    if old == new:
        return "equivalent"
    return "tightened" if new > old else "loosened"


def _of_sets(old: Set[object], new: Set[object]) -> str:
    """The direction of a change of two sets of demands: a larger set is stricter."""
    if old == new:
        return "equivalent"
    if old < new:
        return "tightened"
    return "loosened" if new < old else "incomparable"


def _settings(given: tuple[Setting, ...] | None) -> dict[str, object] | None:
    return None if given is None else {each.name: each.value.value for each in given}


def _conditions(given: tuple[Expr, ...]) -> Set[object]:
    return {text(part) for each in given for part in conjuncts(each)}


def _said(lines: Mapping[str, str], key: str) -> str:
    """All lines of a clause."""
    return "; ".join(
        line for about, line in lines.items() if about == key or about.startswith(f"{key} at ")
    )
