"""All comparisons of an equivalence, one after another: references are run once, a side that fails ends its own comparison only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tspec.equivalence.check import Outcome, Reference, compare, run_candidate, run_reference
from tspec.equivalence.launch import Failed
from tspec.equivalence.localize import Localization, localize
from tspec.equivalence.sides import Trial


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison came to. `outcome` is None where a side `failed`."""

    trial: Trial
    outcome: Outcome | None
    localized: Localization | None = None
    failed: Failed | None = None

    @property
    def differs(self) -> bool:
        """Something is wrong."""
        return self.outcome is not None and bool(self.outcome.wrong or self.outcome.faults)

    @property
    def is_empty(self) -> bool:
        """No tensor was compared."""
        found = self.outcome
        return found is not None and not (found.comparisons or found.faults)


def verdicts(trials: Sequence[Trial], folder: Path) -> Iterator[Verdict]:
    """Run each trial, and say what it came to before the next one is run.

    Recordings go into the folder; of several trials, each has a folder in it, with the number of the
    trial, from 1 on. A reference lies with the first trial that needs it.
    """
    known: dict[tuple[str, ...], Reference] = {}
    for number, trial in enumerate(trials, 1):
        place = folder if len(trials) == 1 else folder / str(number)
        place.mkdir(exist_ok=True)
        try:
            if trial.reference not in known:
                known[trial.reference] = run_reference(trial, place)
            found = _judged(trial, known[trial.reference], place)
        except Failed as why:
            found = Verdict(trial, None, failed=why)
        yield found


def _judged(trial: Trial, reference: Reference, place: Path) -> Verdict:
    candidate = run_candidate(trial, reference.recording, place)
    found = Verdict(trial, compare(trial, reference, candidate))
    if not (trial.localize and found.differs):
        return found
    return replace(found, localized=localize(trial, reference, candidate, place))
