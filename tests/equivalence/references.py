"""References that the tests of a file share: each is run once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tspec.equivalence.runs import ReferenceRecordings, run_reference
from tspec.equivalence.sides import Trial


def references_of(
    trial: Callable[[str], Trial], folders: pytest.TempPathFactory
) -> Callable[[str], ReferenceRecordings]:
    """The reference and its samples of the trial of a name, such as a dtype or an equivalence."""
    found: dict[str, ReferenceRecordings] = {}

    def of(name: str) -> ReferenceRecordings:
        if name not in found:
            found[name] = run_reference(trial(name), folders.mktemp(name))
        return found[name]

    return of
