"""References that the tests of a file share: each is run once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tspec.equivalence.check import ReferenceRecordings, run_reference
from tspec.equivalence.sides import Trial


def references_of(
    trial: Callable[[str], Trial], folders: pytest.TempPathFactory
) -> Callable[[str], ReferenceRecordings]:
    """The reference of a dtype and its samples, by the trial of that dtype."""
    found: dict[str, ReferenceRecordings] = {}

    def of(dtype: str) -> ReferenceRecordings:
        if dtype not in found:
            found[dtype] = run_reference(trial(dtype), folders.mktemp(dtype))
        return found[dtype]

    return of
