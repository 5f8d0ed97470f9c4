"""What a comparison of two runs found, as results and as text."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.equivalence.check import Outcome
from tspec.equivalence.compare import Comparison, Fault
from tspec.report.results import Case, Result, Results, fingerprint, portable, region
from tspec.resolve.program.trials import EquivalenceDeclaration

SHOWN = 12
"""Of so many wrong tensors the text has a line."""


def results(outcome: Outcome, declaration: EquivalenceDeclaration) -> Results:
    """One result for each fault of the pieces, and one for what differs.

    That is the first wrong tensor in the order of the reference's run; the others are its
    consequences, the worst first.
    """
    name = qualified(declaration)
    file = portable(declaration.source.path)
    place = region(declaration.source, declaration.span)

    def of_fault(each: Fault) -> Result:
        message = f"{each.name}: {each.fault.message}"
        said = {"what": each.fault.kind, **_named(each)}
        mark = fingerprint(name, file, each.fault.kind, each.name.kind, each.name.name)
        return Result(name, message, place, properties=said, fingerprint=mark)

    def of_comparison(each: Comparison, others: tuple[Result, ...] = ()) -> Result:
        numbers = {"error": each.error, "tolerated": each.tolerated, "times": each.times}
        said = {"what": "difference", **_named(each), **numbers, "evidence": each.evidence}
        mark = fingerprint(name, file, "difference", each.name.kind, each.name.name)
        message = _sentence(each)
        return Result(name, message, place, properties=said, fingerprint=mark, consequences=others)

    found = [of_fault(each) for each in outcome.faults]
    if outcome.first is not None:
        others = (each for each in outcome.wrong if each is not outcome.first)
        found.append(of_comparison(outcome.first, tuple(map(of_comparison, others))))
    case = Case(name, file, "failed" if found else "passed", line=place.line)
    return Results(tuple(found), (case,))


def text(outcome: Outcome, declaration: EquivalenceDeclaration) -> str:
    """The comparison as text: faults, the first wrong tensor, and all by how far they are off."""
    return "\n".join(_lines(outcome, declaration))


def qualified(declaration: EquivalenceDeclaration) -> str:
    """The name of an equivalence with that of its module."""
    return f"{declaration.module}.{declaration.name}"


def _lines(outcome: Outcome, declaration: EquivalenceDeclaration) -> Iterator[str]:
    wrong, faults = outcome.wrong, outcome.faults
    verdict = f"{len(wrong)} differ" if wrong else "none differs"
    yield f"{qualified(declaration)}: {_count(len(outcome.comparisons), 'tensor')} compared, {verdict}"
    if faults:
        yield ""
        yield f"{_count(len(faults), 'tensor')} whose pieces do not fit:"
        yield from (f"  {each.name}: {each.fault.message}" for each in faults[:SHOWN])
        yield from _more(len(faults))
    if outcome.first is not None:
        yield ""
        yield f"first wrong: {_sentence(outcome.first)}"
        yield ""
        yield "     times     error  tolerated  tensor"
        for each in wrong[:SHOWN]:
            mark = "  (first)" if each is outcome.first else ""
            numbers = f"{each.times:10.3g}{each.error:10.2g}{each.tolerated:11.2g}"
            yield f"{numbers}  {each.name}{mark}"
        yield from _more(len(wrong))
    if outcome.unplaced:
        names = tuple(dict.fromkeys(f"{each.kind} {each.name}" for each in outcome.unplaced))
        yield ""
        yield "not compared, since the layout has no place for them:"
        yield from (f"  {each}" for each in names[:SHOWN])
        yield from _more(len(names))


def _sentence(each: Comparison) -> str:
    said = f"{each.name}: error {each.error:.2g}, tolerated {each.tolerated:.2g}"
    return f"{said}; {each.evidence}" if each.evidence else said


def _named(each: Comparison | Fault) -> dict[str, object]:
    name = each.name
    return {
        "kind": name.kind,
        "subject": name.name,
        "step": name.step,
        "microbatch": name.microbatch,
        "call": name.call,
    }


def _more(number: int) -> Iterator[str]:
    if number > SHOWN:
        yield f"  and {number - SHOWN} more"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
