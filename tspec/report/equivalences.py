"""What a comparison of two runs found, as results and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Literal

from tspec.equivalence.blame import Blame
from tspec.equivalence.check import Outcome
from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.localize import Localization, Suspect
from tspec.equivalence.pieces import placement
from tspec.equivalence.recording import TensorName
from tspec.equivalence.sides import setting_text, settings_text
from tspec.equivalence.sketch import CERTAINTY
from tspec.equivalence.verdicts import Verdict
from tspec.folding import FoldedLine
from tspec.report.figures import Curve, Figure
from tspec.report.results import Case, Result, Results, fingerprint, portable, region
from tspec.resolve.program.trials import EquivalenceDeclaration
from tspec.values import Location

SHOWN = 12
"""Of so many wrong tensors the text has a line."""


def results(verdicts: Sequence[Verdict], declaration: EquivalenceDeclaration) -> Results:
    """The results of all comparisons, and a case for each."""
    found = [_results(each, declaration) for each in verdicts]
    return Results(
        tuple(one for each in found for one in each.results),
        tuple(one for each in found for one in each.cases),
        figures=tuple(one for each in found for one in each.figures),
    )


def _results(verdict: Verdict, declaration: EquivalenceDeclaration) -> Results:
    """One result for each fault of the pieces, one for what differs, and one for each module that is wrong by itself.

    What differs is the first wrong tensor in the order of the reference's run; the others are its
    consequences, the worst first. A comparison with a side that failed has a case alone.
    """
    name, outcome, localized = verdict.trial.name, verdict.outcome, verdict.localized
    file = portable(declaration.source.path)
    place = region(declaration.source, declaration.span)
    if outcome is None:
        return Results((), (Case(name, file, "error", str(verdict.failed), place.line),))

    def of_fault(each: Fault) -> Result:
        message = f"{each.name}: {each.fault.message}"
        said = {"what": each.fault.kind, **_named(each)}
        mark = fingerprint(name, file, each.fault.kind, each.name.kind, each.name.name)
        if each.fault.kind == "layout":
            of = placement(verdict.trial, each.name)
            layout = verdict.trial.layout
            there = place if of is None else region(layout.source, of.pattern_span)
            return Result(name, message, there, properties=said, fingerprint=mark)
        blame = outcome.blame if each.name == outcome.earliest else None
        if blame is not None:
            said["made_by"] = {"subject": blame.module, "part": blame.part, **_places(blame)}
        line = _line(blame or outcome.maker(each.name))
        return Result(name, message, place, properties=said, fingerprint=mark, location=line)

    def of_comparison(each: TensorComparison, others: tuple[Result, ...] = ()) -> Result:
        numbers = {"error": each.error, "tolerated": each.tolerated, "times": each.times}
        said = {"what": "difference", **_named(each), **numbers, "evidence": each.evidence.says}
        if each.standard_error:
            said["standard_error"] = each.standard_error
        blame = outcome.blame if each.name == outcome.earliest else None
        if blame is not None:
            said["made_by"] = {"subject": blame.module, "part": blame.part, **_places(blame)}
        mark = fingerprint(name, file, "difference", each.name.kind, each.name.name)
        return Result(
            *(name, _sentence(each), place),
            properties=said,
            fingerprint=mark,
            consequences=others,
            location=None if blame is None else _line(blame),
        )

    def of_suspect(each: Suspect) -> Result:
        said = {
            "what": "module",
            "subject": each.module,
            "part": each.part,
            "times": each.times,
            "suggests": each.evidence.suggests,
            "evidence": each.evidence.says,
            **_places(each),
            "tensors": [str(one) for one in each.tensors],
        }
        mark = fingerprint(name, file, "module", each.module, each.part)
        message = f"wrong by itself: {_blame(each)}"
        line = _line(each)
        return Result(name, message, place, properties=said, fingerprint=mark, location=line)

    found = [of_fault(each) for each in outcome.faults]
    if outcome.first is not None:
        others = (each for each in outcome.wrong if each is not outcome.first)
        found.append(of_comparison(outcome.first, tuple(map(of_comparison, others))))
    found += [of_suspect(each) for each in localized.suspects] if localized else []
    case = Case(name, file, "failed" if found else "passed", _summary(outcome), place.line)
    return Results(tuple(found), (case,), figures=tuple(figures(verdict)))


def _summary(outcome: Outcome) -> str:
    """One line: how many tensors differ, the first that is wrong, and whose code made it."""
    said = _compared(outcome)
    if outcome.earliest is not None:
        said += f"; first wrong: {outcome.earliest}"
    if outcome.blame is not None:
        line = _line(outcome.blame)
        at = f" at {line.file}:{line.line}" if line else ""
        said += f", made by {_part(outcome.blame)}{at}"
    return said


FIGURES = (
    ("Activations: inputs and outputs of modules", ("inputs", "outputs", "losses")),
    ("Gradients", ("input_grads", "output_grads", "param_grads", "gradient_norms")),
    ("Parameters after the step", ("params", "buffers")),
    ("States of the optimizer", ("states",)),
)


def figures(verdict: Verdict) -> Iterator[Figure]:
    """The errors of tensors against their place in the run, as multiples of their dtype's epsilon (TTrace, figure 9)."""
    outcome, localized = verdict.outcome, verdict.localized
    if outcome is None:
        return
    swept = settings_text(verdict.trial.swept)
    alone = {each.name: each for each in localized.comparisons} if localized else {}
    for title, kinds in FIGURES:
        found = [each for each in outcome.comparisons if each.name.kind in kinds and each.epsilon]
        if not found:
            continue
        curves = [
            _curve("the candidate", found, "values"),
            Curve(
                "tolerated", tuple(each.tolerated / each.epsilon for each in found), role="limit"
            ),
        ]
        if alone and kinds[0] not in ("params", "states"):
            again = [alone.get(each.name) for each in found]
            curves.append(_curve("with the reference's inputs and gradients", again, "others"))
        places = tuple(str(each.name) for each in found)
        yield Figure(
            f"{title}, {swept}" if swept else title,
            "error as a multiple of epsilon",
            places,
            tuple(curves),
        )


def _curve(
    name: str, of: Sequence[TensorComparison | None], role: Literal["values", "others"]
) -> Curve:
    values = tuple(None if each is None else each.error / each.epsilon for each in of)
    marked = frozenset(i for i, each in enumerate(of) if each is not None and each.differs)
    return Curve(name, values, marked, role)


def text(verdict: Verdict, width: int) -> str:
    """A comparison as text: faults, the first wrong tensor, all by how far they are off, modules to blame. Lines are folded to so many columns."""
    if verdict.outcome is None:
        return FoldedLine(f"{verdict.trial.name}: {verdict.failed}").folded(width)
    localized = () if verdict.localized is None else _localized(verdict.localized)
    said = (*_lines(verdict.trial.name, verdict.outcome), *localized)
    return "\n".join(each.folded(width) for each in said)


def table(verdicts: Sequence[Verdict], declaration: EquivalenceDeclaration, width: int) -> str:
    """The verdicts of several comparisons: a line for each, with its values of the sweeps. The last column is folded to so many columns of the screen."""
    names = [each.name for each in declaration.sweeps]
    rows = [
        (*(setting_text(each.trial.swept[name]) for name in names), *_told(each))
        for each in verdicts
    ]
    head = (*names, "reference", "verdict", "tensors", "first wrong")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head) - 1)]
    differing = sum(each.differs for each in verdicts)
    failed = sum(each.outcome is None for each in verdicts)
    said = f"{differing} differ{'s' * (differing == 1)}" if differing else "none differs"
    said += f", {failed} failed" if failed else ""
    count = _count(len(rows), "configuration")
    lines = [FoldedLine(f"{qualified(declaration)}: {count} compared, {said}"), FoldedLine("")]
    for row in (head, *rows):
        cells = (cell.ljust(wide) for cell, wide in zip(row[:-1], widths, strict=True))
        before = sum(wide + 2 for wide in widths)
        lines.append(FoldedLine("  ".join((*cells, row[-1])).rstrip(), later=before))
    return "\n".join(each.folded(width) for each in lines)


def _told(verdict: Verdict) -> tuple[str, str, str, str]:
    """Of a comparison: what its reference has of the sweeps, the verdict, how many tensors, the first that is wrong."""
    unlike, outcome = settings_text(verdict.trial.unlike), verdict.outcome
    if outcome is None:
        return unlike, "failed", "", str(verdict.failed)
    wrong: tuple[TensorComparison | Fault, ...] = (*outcome.wrong, *outcome.faults)
    first = min(wrong, key=lambda each: each.order, default=None)
    number = str(len(outcome.comparisons))
    return unlike, "differs" if first else "agrees", number, str(first.name) if first else ""


def qualified(declaration: EquivalenceDeclaration) -> str:
    """The name of an equivalence with that of its module."""
    return f"{declaration.module}.{declaration.name}"


def _lines(name: str, outcome: Outcome) -> Iterator[FoldedLine]:
    wrong, faults = outcome.wrong, outcome.faults
    yield FoldedLine(f"{name}: {_compared(outcome)}")
    yield from _estimated(outcome)
    yield from _divided(outcome.scale.microbatches)
    if faults:
        yield FoldedLine("")
        yield FoldedLine(f"{_count(len(faults), 'tensor')} whose pieces do not fit:")
        for fault in faults[:SHOWN]:
            yield FoldedLine(f"{fault.name}: {fault.fault.message}", 2, 4)
        yield from _more(len(faults))
    if outcome.earliest is not None:
        yield FoldedLine("")
        yield FoldedLine(f"first wrong: {_earliest(outcome)}")
    if outcome.blame is not None:
        yield FoldedLine(f"made by {_part(outcome.blame)}", 2, 4)
        yield from _where(outcome.blame, 4)
    if outcome.first is not None:
        head = "     times     error  tolerated  "
        yield FoldedLine("")
        yield FoldedLine(f"{head}tensor", later=len(head))
        for each in wrong[:SHOWN]:
            mark = "  (first)" if each.name == outcome.earliest else ""
            numbers = f"{each.times:10.3g}{each.error:10.2g}{each.tolerated:11.2g}"
            yield FoldedLine(f"{numbers}  {each.name}{mark}", later=len(head))
        yield from _more(len(wrong))
    if outcome.unplaced:
        names = tuple(dict.fromkeys(f"{each.kind} {each.name}" for each in outcome.unplaced))
        yield FoldedLine("")
        yield FoldedLine("not compared, since the layout has no place for them:")
        yield from (FoldedLine(each, 2, 4) for each in names[:SHOWN])
        yield from _more(len(names))
    yield from _uneven(outcome.uneven)


def _uneven(found: Mapping[TensorName, str]) -> Iterator[FoldedLine]:
    """The tensors of which a size of the input does not divide: the first for each reason."""
    if found:
        yield FoldedLine("")
        yield FoldedLine("not compared, since a size of the input does not divide:")
    for why in dict.fromkeys(found.values()):
        first, *others = (name for name, each in found.items() if each == why)
        more = f" and {len(others)} more" if others else ""
        yield FoldedLine(f"{first}{more}: {why}", 2, 4)


def _earliest(outcome: Outcome) -> str:
    """What is wrong first: how far it is off, or that its replicas differ where the first one is right."""
    if outcome.first is not None and outcome.first.name == outcome.earliest:
        return _sentence(outcome.first)
    [fault, *_] = (each for each in outcome.faults if each.name == outcome.earliest)
    return f"{fault.name}: {fault.fault.message}"


def _compared(outcome: Outcome) -> str:
    differing = f"{len(outcome.wrong)} differ" if outcome.wrong else "none differs"
    return f"{_count(len(outcome.comparisons), 'tensor')} compared, {differing}"


def _estimated(outcome: Outcome) -> Iterator[FoldedLine]:
    """How sure errors are that are estimated from sketches, and which tensors were fetched in full."""
    error = max((each.standard_error for each in outcome.comparisons), default=0.0)
    if error:
        estimated = sum(each.standard_error > 0 for each in outcome.comparisons)
        raised = CERTAINTY * sqrt(2) * error
        said = f"{_count(estimated, 'error')} estimated from sketches: "
        yield FoldedLine(f"{said}standard error {error:.1%}, tolerances raised by {raised:.0%}")
    if outcome.drilled:
        count = _count(len(outcome.drilled), "tensor")
        yield FoldedLine(f"in full, of a second run: {count}, the first that were wrong")


def _divided(times: float) -> Iterator[FoldedLine]:
    """That one side divides losses by the number of micro-batches, and the other one gradients."""
    if times != 1:
        divides = ("reference", "candidate") if times > 1 else ("candidate", "reference")
        yield FoldedLine(
            f"the {divides[0]} divides losses by {max(times, 1 / times):.4g} micro-batches, the {divides[1]} gradients: compared as such"
        )


def _localized(found: Localization) -> Iterator[FoldedLine]:
    yield FoldedLine("")
    if found.suspects:
        yield FoldedLine("wrong by itself, with the reference's inputs and gradients:")
        yield FoldedLine("")
        yield FoldedLine("     times  module")
    else:
        said = "with the reference's inputs and gradients nothing is wrong: "
        yield FoldedLine(f"{said}the fault lies between places of the layout")
    for each in found.suspects[:SHOWN]:
        yield FoldedLine(f"{each.times:10.3g}  {_part(each)}", later=14)
        if each.evidence.suggests != "unknown":
            yield FoldedLine(f"{each.evidence.suggests}: {each.evidence.says}", 14, 16)
        yield from _where(each, 14)
    yield from _more(len(found.suspects))
    if found.unjudged:
        yield FoldedLine("")
        yield FoldedLine("not judged alone, since the layout has no place for their inputs:")
        yield from (FoldedLine(each, 2, 4) for each in found.unjudged[:SHOWN])
        yield from _more(len(found.unjudged))


def _where(blame: Blame, indent: int) -> Iterator[FoldedLine]:
    """The module's own code, the line that called it, and lines of the script that did more."""
    if blame.call is not None:
        called = f", called from {blame.call.called}" if blame.call.called else ""
        said = f"{blame.call.kind}, forward at {blame.call.defined}{called}"
        yield FoldedLine(said, indent, indent + 2)
    if blame.lines:
        yield FoldedLine(f"at {', '.join(blame.lines)}", indent, indent + 2)


def _places(blame: Blame) -> dict[str, object]:
    call = blame.call
    return {
        "defined": "" if call is None else call.defined,
        "called": "" if call is None else call.called,
        "lines": list(blame.lines),
    }


def _line(blame: Blame) -> Location | None:
    """The module's own code if it is in the project, else the line of the script that called it, or did more."""
    call = blame.call
    calls = () if call is None else ((call.defined, f"{call.kind}.forward"), (call.called, ""))
    for place, function in (*calls, *((line, "") for line in blame.lines)):
        file, _, line = place.rpartition(":")
        if file and Path(file).is_file():
            return Location(file, int(line), function)
    return None


def _blame(each: Suspect) -> str:
    """A module, what of it is wrong, and what the numbers suggest."""
    said = _part(each)
    if each.evidence.suggests != "unknown":
        said += f"; {each.evidence.suggests}: {each.evidence.says}"
    return said


def _part(each: Blame) -> str:
    """A module, and what of it is wrong."""
    module = each.module or "the script's own code"
    return f"{module}: {each.part}"


def _sentence(each: TensorComparison) -> str:
    sure = f" (standard error {each.standard_error:.1%})" if each.standard_error else ""
    said = f"{each.name}: error {each.error:.2g}{sure}, tolerated {each.tolerated:.2g}"
    return f"{said}; {each.evidence.says}" if each.evidence.says else said


def _named(each: TensorComparison | Fault) -> dict[str, object]:
    name = each.name
    return {
        "kind": name.kind,
        "subject": name.name,
        "step": name.step,
        "microbatch": name.microbatch,
        "call": name.call,
    }


def _more(number: int) -> Iterator[FoldedLine]:
    if number > SHOWN:
        yield FoldedLine(f"and {number - SHOWN} more", 2, 4)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
