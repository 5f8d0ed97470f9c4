"""The trial of an equivalence that compares one configuration."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.equivalence.sides import Trial, trials_of
from tspec.resolve.program.trials import EquivalenceDeclaration


def trial_of(declaration: EquivalenceDeclaration, command: Sequence[str]) -> Trial:
    """Its only trial. Raises NotExecuted."""
    [trial] = trials_of(declaration, command)
    return trial
