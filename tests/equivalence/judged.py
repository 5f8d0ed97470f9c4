"""Compares a job with one rank, from full tensors and again from sketches: what is found of it, and where."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch._dynamo  # noqa: F401 - optimizers import it

import tspec.runtime.live.job  # noqa: F401 - before ranks are forked
from tests.equivalence.forked import forked
from tspec.equivalence.check import compare
from tspec.equivalence.localize import Localization, localize
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.runs import ReferenceRecordings, run_candidate, run_reference
from tspec.equivalence.sides import Trial, trials_of
from tspec.resolve import load

HERE = Path(__file__).resolve().parent
NOTHING = "nothing in"


@dataclass(frozen=True, slots=True)
class Job:
    """A script with its options, the fault that is put into its candidate, how what is found begins, and what else is in it.

    `equivalence` is one of the file beside the script, `ranks` the number of the candidate's. The script is in `folder`,
    and its option `chooses` a fault.
    """

    script: str
    equivalence: str
    options: str
    fault: str
    found: str
    more: str = ""
    ranks: int = 2
    folder: Path = HERE
    chooses: str = "--fault"

    @property
    def name(self) -> str:
        """As it is printed and chosen."""
        ranks = f"{self.ranks} ranks" if self.ranks != 2 else ""
        said = (self.script, ranks, self.options, self.fault)
        return " ".join(filter(None, said))

    def trial(self, fault: str, sketched: bool = False) -> Trial:
        """Its equivalence, with some fault or none."""
        program = load([self.folder / f"{self.script}.tspec"]).program
        assert program is not None
        [declaration] = (each for each in program.equivalences if each.name == self.equivalence)
        given = (self.chooses, fault) if fault else ()
        command = (str(self.folder / f"{self.script}.py"), *self.options.split(), *given)
        found = trials_of(declaration, command)
        [trial] = (each for each in found if each.world == self.ranks)
        return replace(trial, sketched=sketched)

    def is_found(self, said: str) -> bool:
        """What was printed is what is to be found."""
        return said.startswith(self.found) and self.more in said


@dataclass(frozen=True, slots=True)
class Judged:
    """What is found of a job: from full tensors, with the modules that are wrong by themselves, and from sketches."""

    outcome: Outcome
    alone: Localization | None
    sketched: Outcome

    @property
    def agrees(self) -> bool:
        """The same tensor is the first from sketches."""
        return first(self.outcome) == first(self.sketched)

    def __str__(self) -> str:
        """The first wrong tensor, the kinds of all that are wrong, and the first module that is wrong by itself: a line each."""
        wrong = (*self.outcome.faults, *self.outcome.wrong)
        said = f"{first(self.outcome)} in {len(self.outcome.comparisons)} tensors\n"
        if wrong:
            said += f"  wrong: {', '.join(sorted({each.name.kind for each in wrong}))}\n"
        for each in self.alone.suspects[:1] if self.alone else ():
            why = f" ({each.evidence.suggests})" if each.evidence.says else ""
            said += f"  alone: {each.module or 'the script'}: {each.part}{why}\n"
        return said if self.agrees else f"{said}  from sketches: {first(self.sketched)}\n"


def first(found: Outcome) -> str:
    """The first tensor that is wrong."""
    return str(found.earliest or "nothing")


References = dict[tuple[Job, bool], ReferenceRecordings]
"""Those that were run before, of tensors and of sketches."""


def judged(job: Job, references: References, folder: Path) -> Judged:
    """What is found of a job."""
    outcome, alone = found_of(job, references, folder)
    return Judged(outcome, alone, found_of(job, references, folder, sketched=True)[0])


def found_of(
    job: Job, references: References, folder: Path, sketched: bool = False
) -> tuple[Outcome, Localization | None]:
    """What is found of a job from full tensors, with the modules that are wrong by themselves, or from sketches."""
    place = folder / ("sketches" if sketched else "tensors")
    place.mkdir()
    asked, clean = job.trial(job.fault, sketched), replace(job, fault="", found="", more="")
    if (clean, sketched) not in references:
        references[clean, sketched] = run_reference(clean.trial("", sketched), place, forked)
    reference = references[clean, sketched]
    candidate = run_candidate(asked, reference.recording, place, start=forked)
    found = compare(asked, reference, candidate)
    if sketched or not (asked.localize and (found.wrong or found.faults)):
        return found, None
    return found, localize(asked, reference, candidate, place, forked)
