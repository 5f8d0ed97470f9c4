"""The findings of a comparison of two runs, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt

from tspec.equivalence.blame import Blame
from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.localize import Localization
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.recording import TensorName
from tspec.equivalence.sides import setting_text, settings_text
from tspec.equivalence.sketch import CERTAINTY
from tspec.equivalence.verdicts import Verdict
from tspec.folding import FoldedLine
from tspec.report.equivalences.wording import (
    compared,
    counted,
    not_compared,
    of_layers,
    part,
    randomness,
    sentence,
    unchanged,
)
from tspec.resolve.program.trials import EquivalenceDeclaration
from tspec.values import listed

SHOWN = 12
"""The number of wrong tensors that get a line in the text."""


def text(verdict: Verdict, width: int) -> str:
    """A comparison as text: faults, the first wrong tensor, all tensors by their error, modules to
    blame. Lines are folded to `width` columns.
    """
    if verdict.outcome is None:
        return FoldedLine(f"{verdict.trial.name}: {verdict.failed}").folded(width)
    localized = () if verdict.localized is None else _localized(verdict.localized)
    said = (*_lines(verdict.trial.name, verdict.outcome, verdict.further), *localized)
    return "\n".join(each.folded(width) for each in said)


def table(verdicts: Sequence[Verdict], declaration: EquivalenceDeclaration, width: int) -> str:
    """The verdicts of several comparisons: a line for each, with its values of the sweeps. The last
    column is folded so that lines have `width` columns.
    """
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
    count = counted(len(rows), "configuration")
    lines = [FoldedLine(f"{qualified(declaration)}: {count} compared, {said}"), FoldedLine("")]
    for row in (head, *rows):
        cells = (cell.ljust(wide) for cell, wide in zip(row[:-1], widths, strict=True))
        before = sum(wide + 2 for wide in widths)
        lines.append(FoldedLine("  ".join((*cells, row[-1])).rstrip(), later=before))
    return "\n".join(each.folded(width) for each in lines)


def _told(verdict: Verdict) -> tuple[str, str, str, str]:
    """One line about a comparison: the reference's other settings, the verdict, the number of
    tensors, the first wrong one.
    """
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


def _lines(name: str, outcome: Outcome, further: int) -> Iterator[FoldedLine]:
    wrong = outcome.wrong
    faults = [
        each
        for each in outcome.faults
        if outcome.missing_pass(each.name) is None and each.fault.kind != "skipped"
    ]
    yield FoldedLine(f"{name}: {compared(outcome)}")
    if further:
        runs = counted(further, "more perturbed run")
        yield FoldedLine(
            f"errors were near their tolerances: {runs} of the reference measured the noise", 2, 2
        )
    yield from _estimated(outcome)
    yield from _divided(outcome.scale.microbatches)
    yield from (FoldedLine(each, later=2) for each in (*unchanged(outcome), *randomness(outcome)))
    for skipped in outcome.faults:
        if skipped.fault.kind == "skipped":
            yield FoldedLine("")
            yield FoldedLine(f"{skipped.name}: {skipped.fault.message}", later=2)
    for each in outcome.missing_passes:
        yield FoldedLine("")
        yield FoldedLine(
            f"step {each.of.step}: {each.blame.part}: {counted(len(each.tensors), 'gradient')} not recorded",
            later=2,
        )
    norms = [each for each in faults if each.fault.kind == "norm"]
    inexact = [each for each in faults if each.fault.kind in ("copy", "recomputed")]
    shards = [each for each in faults if each not in norms and each not in inexact]
    yield from _faults(shards, f"{counted(len(shards), 'tensor')} whose shards do not fit:")
    yield from _faults(inexact, f"{counted(len(inexact), 'tensor')} not exact, as they have to be:")
    yield from _faults(norms, "reported norms that are not those of the job's own gradients:")
    if outcome.earliest is not None:
        yield FoldedLine("")
        yield FoldedLine(f"first wrong: {_earliest(outcome)}")
    if outcome.blame is not None:
        yield FoldedLine(f"made by {part(outcome.blame)}", 2, 4)
        yield from _where(outcome.blame, 4)
    if outcome.first is not None:
        head = "     times     error  tolerated  "
        yield FoldedLine("")
        yield FoldedLine(f"{head}tensor", later=len(head))
        for off in wrong[:SHOWN]:
            mark = "  (first)" if off.name == outcome.earliest else ""
            numbers = f"{off.times:10.3g}{off.error:10.2g}{off.tolerated:11.2g}"
            yield FoldedLine(f"{numbers}  {off.name}{mark}", later=len(head))
        yield from _more(len(wrong))
    if outcome.unplaced:
        names = of_layers([f"{each.kind} {each.name}" for each in outcome.unplaced])
        yield FoldedLine("")
        yield FoldedLine("not compared, since the layout has no place for them:")
        yield from (FoldedLine(each, 2, 4) for each in names[:SHOWN])
        yield from _more(len(names))
    yield from _uneven(outcome.uneven)
    said = list(not_compared(outcome))
    if said:
        yield FoldedLine("")
    yield from (FoldedLine(each, later=2) for each in said[:SHOWN])
    yield from _more(len(said))


def _faults(faults: Sequence[Fault], head: str) -> Iterator[FoldedLine]:
    if faults:
        yield FoldedLine("")
        yield FoldedLine(head)
        for fault in faults[:SHOWN]:
            yield FoldedLine(f"{fault.name}: {fault.fault.message}", 2, 4)
        yield from _more(len(faults))


def _uneven(found: Mapping[TensorName, str]) -> Iterator[FoldedLine]:
    """The first tensor for each reason why a size of the input does not divide."""
    if found:
        yield FoldedLine("")
        yield FoldedLine("not compared, since a size of the input does not divide:")
    for why in dict.fromkeys(found.values()):
        names = [str(name) for name, each in found.items() if each == why]
        yield FoldedLine(f"{listed(names, 1)}: {why}", 2, 4)


def _earliest(outcome: Outcome) -> str:
    """The first fault: the size of its error, or that its replicas differ where the first one is
    right.
    """
    if outcome.first is not None and outcome.first.name == outcome.earliest:
        return sentence(outcome.first)
    [fault, *_] = (each for each in outcome.faults if each.name == outcome.earliest)
    return f"{fault.name}: {fault.fault.message}"


def _estimated(outcome: Outcome) -> Iterator[FoldedLine]:
    """Lines on the standard error of errors estimated from sketches, and on the tensors fetched in
    full.
    """
    error = max((each.standard_error for each in outcome.comparisons), default=0.0)
    if error:
        estimated = sum(each.standard_error > 0 for each in outcome.comparisons)
        raised = CERTAINTY * sqrt(2) * error
        said = f"{counted(estimated, 'error')} estimated from sketches: "
        yield FoldedLine(f"{said}standard error {error:.1%}, tolerances raised by {raised:.0%}")
    if outcome.drilled:
        count = counted(len(outcome.drilled), "tensor")
        yield FoldedLine(f"in full, of a second run: {count}, the first that were wrong")


def _divided(times: float) -> Iterator[FoldedLine]:
    """A line that one side divides losses by the number of micro-batches, and the other side
    divides gradients.
    """
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
        yield FoldedLine(f"{each.times:10.3g}  {part(each)}", later=14)
        if each.evidence.suggests != "unknown":
            yield FoldedLine(f"{each.evidence.suggests}: {each.evidence.says}", 14, 16)
        yield from _where(each, 14)
    yield from _more(len(found.suspects))
    if found.unjudged:
        yield FoldedLine("")
        yield FoldedLine("inputs that are not replaced, since the layout has no place for them:")
        names = of_layers(found.unjudged)
        yield from (FoldedLine(each, 2, 4) for each in names[:SHOWN])
        yield from _more(len(names))


def _where(blame: Blame, indent: int) -> Iterator[FoldedLine]:
    """The module's own code, the line that called it, and lines of the script that did more."""
    if blame.call is not None:
        called = f", called from {blame.call.called}" if blame.call.called else ""
        said = f"{blame.call.kind}, forward at {blame.call.defined}{called}"
        yield FoldedLine(said, indent, indent + 2)
    if blame.lines:
        yield FoldedLine(f"at {', '.join(blame.lines)}", indent, indent + 2)


def _more(number: int) -> Iterator[FoldedLine]:
    if number > SHOWN:
        yield FoldedLine(f"and {number - SHOWN} more", 2, 4)
