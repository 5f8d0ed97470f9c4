"""All comparisons of an equivalence, one after another: references are run once, a side that fails ends its own comparison only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tspec.equivalence.check import compare, drill
from tspec.equivalence.launch import Failed, SideRun, launch
from tspec.equivalence.localize import Localization, localize, localize_sketched
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.runs import (
    Launch,
    ReferenceRecordings,
    candidate_run,
    read_candidate,
    read_reference,
    reference_runs,
    run_candidate,
    run_reference,
    sampled_further,
    write_weights,
)
from tspec.equivalence.sides import Trial

Side = Literal["reference", "candidate"]

NEAR = 4
"""The multiple of its tolerance up to which an error may be round-off that few perturbed runs did not
show.
"""
ENOUGH = 4
"""The number of perturbed runs whose noise is taken as it is."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a trial. `outcome` is None where a side `failed`. `further` perturbed runs were made,
    since errors were near their tolerances.
    """

    trial: Trial
    outcome: Outcome | None
    localized: Localization | None = None
    failed: Failed | None = None
    further: int = 0

    @property
    def differs(self) -> bool:
        """Something is wrong."""
        return self.outcome is not None and bool(self.outcome.wrong or self.outcome.faults)

    @property
    def is_empty(self) -> bool:
        """No tensor was compared."""
        found = self.outcome
        return found is not None and not (found.comparisons or found.faults)


@dataclass(frozen=True, slots=True)
class TrialFolders:
    """A trial with the folders of its two sides."""

    trial: Trial
    reference: Path
    candidate: Path


def places(trials: Sequence[Trial], folder: Path) -> Iterator[TrialFolders]:
    """The folders with the recordings of each trial: `folder` itself, or for several trials
    subfolders numbered from 1.

    A reference lies with the first trial that needs it.
    """
    known: dict[tuple[str, ...], Path] = {}
    for number, trial in enumerate(trials, 1):
        place = folder if len(trials) == 1 else folder / str(number)
        yield TrialFolders(trial, known.setdefault(trial.reference, place), place)


def verdicts(
    found: Iterable[TrialFolders], drills: bool = False, start: Launch = launch
) -> Iterator[Verdict]:
    """Run each trial, and yield its verdict before the next one runs. `start` makes the runs.

    With `drills`, tensors whose sketches are wrong are judged in full.
    """
    known: dict[Path, ReferenceRecordings] = {}
    for each in found:
        each.candidate.mkdir(exist_ok=True)
        try:
            if each.reference not in known:
                known[each.reference] = run_reference(each.trial, each.reference, start)
            verdict, known[each.reference] = _judged(each, known[each.reference], drills, start)
        except Failed as why:
            verdict = Verdict(each.trial, None, failed=why)
        yield verdict


def _judged(
    found: TrialFolders, reference: ReferenceRecordings, drills: bool, start: Launch
) -> tuple[Verdict, ReferenceRecordings]:
    """The verdict, and the reference with all its perturbed runs."""
    trial, place = found.trial, found.candidate
    candidate = run_candidate(trial, reference.recording, place, start=start)
    outcome, further = compare(trial, reference, candidate), 0
    if trial.origin is None and is_near(outcome, len(reference.samples)):
        trial, further = replace(trial, samples=ENOUGH), ENOUGH - len(reference.samples)
        reference = sampled_further(trial, reference, found.reference, start)
        outcome = compare(trial, reference, candidate, outcome.scale)
    verdict = Verdict(trial, outcome, further=further)
    if drills and verdict.differs:
        drilled = drill(trial, reference.recording, outcome, place, start)
        return replace(verdict, outcome=drilled), reference
    if not trial.localize or outcome.earliest is None:
        return verdict, reference  # a layout that does not fit is no fault of a module
    judge = localize_sketched if trial.sketched else localize
    localized = judge(trial, reference, candidate, place, start)
    return replace(verdict, localized=localized), reference


def is_near(found: Outcome, samples: int) -> bool:
    """True if all that differs is near its tolerance, which few perturbed runs made: further ones are
    to decide.
    """
    wrong = found.wrong
    return 0 < samples < ENOUGH and bool(wrong) and not found.faults and wrong[0].times <= NEAR


# --- one side alone -------------------------------------------------------------------------------


def runs(found: Iterable[TrialFolders], side: Side) -> Iterator[tuple[SideRun, Path]]:
    """The runs of one side, each with its folder, which exists. The candidate's runs need the
    reference's recordings. Raises Failed.
    """
    known: set[Path] = set()
    for each in found:
        each.candidate.mkdir(exist_ok=True)
        if side == "reference" and each.trial.origin is not None:
            raise Failed(f"the reference is recorded in {each.trial.origin}", "")
        if side == "candidate":
            reference = read_reference(each.trial, each.reference)
            begins = write_weights(each.trial, reference.recording, each.candidate)
            yield candidate_run(each.trial, reference.recording, begins), each.candidate
        elif each.reference not in known:
            known.add(each.reference)
            yield from ((run, each.reference) for run in reference_runs(each.trial))


def compared(found: Iterable[TrialFolders]) -> Iterator[Verdict]:
    """Compare what both sides recorded before. Modules are not judged alone: that takes another run."""
    for each in found:
        trial = each.trial
        try:
            reference = read_reference(trial, each.reference)
            run = candidate_run(trial, reference.recording)
            candidate = read_candidate(trial, reference.recording, run, each.candidate)
            verdict = Verdict(trial, compare(trial, reference, candidate))
        except Failed as why:
            verdict = Verdict(trial, None, failed=why)
        yield verdict
