"""The findings of a comparison of two runs, as results of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tspec.equivalence.blame import Blame
from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.localize import Suspect
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.shards import placement
from tspec.equivalence.sides import Trial
from tspec.equivalence.verdicts import Verdict
from tspec.report.equivalences.figures import figures
from tspec.report.equivalences.wording import (
    compared,
    not_compared,
    part,
    randomness,
    sentence,
    unchanged,
)
from tspec.report.results import Case, Region, Result, Results, fingerprint, portable, region
from tspec.resolve.program.trials import EquivalenceDeclaration
from tspec.values import Location


def results(verdicts: Sequence[Verdict], declaration: EquivalenceDeclaration) -> Results:
    """The results of all comparisons, and a case for each."""
    found = [_results(each, declaration) for each in verdicts]
    return Results(
        tuple(one for each in found for one in each.results),
        tuple(one for each in found for one in each.cases),
        figures=tuple(one for each in found for one in each.figures),
    )


def _results(verdict: Verdict, declaration: EquivalenceDeclaration) -> Results:
    """One result for each fault of the shards, one for the tensors that differ, and one for each
    module that is wrong by itself.

    The result for tensors is the first wrong one in the order of the reference's run; the others
    are its consequences, worst first. A comparison with a failed side has only a case.
    """
    name, outcome, localized = verdict.trial.name, verdict.outcome, verdict.localized
    file = portable(declaration.source.path)
    place = region(declaration.source, declaration.span)
    if outcome is None:
        return Results((), (Case(name, file, "error", str(verdict.failed), place.line),))
    of = _ResultsOfOutcome(verdict.trial, outcome, file, place)
    found = [of.fault(each) for each in outcome.faults]
    if outcome.first is not None:
        others = (each for each in outcome.wrong if each is not outcome.first)
        found.append(of.difference(outcome.first, tuple(map(of.difference, others))))
    found += [of.suspect(each) for each in localized.suspects] if localized else []
    case = Case(name, file, "failed" if found else "passed", _summary(outcome), place.line)
    return Results(tuple(found), (case,), figures=tuple(figures(verdict)))


@dataclass(frozen=True, slots=True)
class _ResultsOfOutcome:
    """Makes the results of one comparison. `place` is that of its declaration, in `file`."""

    trial: Trial
    outcome: Outcome
    file: str
    place: Region

    def fault(self, each: Fault) -> Result:
        """Shards that do not fit together, at the line that made them. A layout that does not fit is shown at its pattern."""
        trial, blame = self.trial, self._blame(each)
        message = f"{each.name}: {each.fault.message}"
        said = {"what": each.fault.kind, **_named(each)}
        mark = self._mark(each.fault.kind, each.name.kind, each.name.name)
        if each.fault.kind == "layout":
            of = placement(trial, each.name)
            there = self.place if of is None else region(trial.layout.source, of.pattern_span)
            return Result(trial.name, message, there, properties=said, fingerprint=mark)
        return Result(
            *(trial.name, message, self.place),
            properties={**said, **_made_by(blame)},
            fingerprint=mark,
            location=_line(blame or self.outcome.maker(each.name)),
        )

    def difference(self, each: TensorComparison, others: tuple[Result, ...] = ()) -> Result:
        """A tensor that differs by more than is tolerated. Only the first wrong one of the run has a line that made it."""
        blame = self._blame(each)
        numbers = {"error": each.error, "tolerated": each.tolerated, "times": each.times}
        said = {"what": "difference", **_named(each), **numbers, "evidence": each.evidence.says}
        if each.standard_error:
            said["standard_error"] = each.standard_error
        return Result(
            *(self.trial.name, sentence(each), self.place),
            properties={**said, **_made_by(blame)},
            fingerprint=self._mark("difference", each.name.kind, each.name.name),
            consequences=others,
            location=None if blame is None else _line(blame),
        )

    def suspect(self, each: Suspect) -> Result:
        """A module that is wrong by itself, with the reference's inputs and gradients."""
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
        return Result(
            *(self.trial.name, f"wrong by itself: {_suspected(each)}", self.place),
            properties=said,
            fingerprint=self._mark("module", each.module, each.part),
            location=_line(each),
        )

    def _blame(self, each: Fault | TensorComparison) -> Blame | None:
        """The code that made a tensor, if it is the first wrong one."""
        return self.outcome.blame if each.name == self.outcome.earliest else None

    def _mark(self, *parts: str) -> str:
        return fingerprint(self.trial.name, self.file, *parts)


def _made_by(blame: Blame | None) -> dict[str, Any]:
    """The property of a result that says whose code made a tensor."""
    if blame is None:
        return {}
    return {"made_by": {"subject": blame.module, "part": blame.part, **_places(blame)}}


def _summary(outcome: Outcome) -> str:
    """One line: the number of differing tensors, the first wrong one, and the code that computed
    it.
    """
    said = compared(outcome)
    if outcome.earliest is not None:
        said += f"; first wrong: {outcome.earliest}"
    if outcome.blame is not None:
        line = _line(outcome.blame)
        at = f" at {line.file}:{line.line}" if line else ""
        said += f", made by {part(outcome.blame)}{at}"
    return "; ".join((said, *not_compared(outcome), *unchanged(outcome), *randomness(outcome)))


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


def _suspected(each: Suspect) -> str:
    """A module, its wrong part, and the cause that the numbers suggest."""
    said = part(each)
    if each.evidence.suggests != "unknown":
        said += f"; {each.evidence.suggests}: {each.evidence.says}"
    return said


def _named(each: TensorComparison | Fault) -> dict[str, object]:
    name = each.name
    return {
        "kind": name.kind,
        "subject": name.name,
        "step": name.step,
        "microbatch": name.microbatch,
        "call": name.call,
    }
