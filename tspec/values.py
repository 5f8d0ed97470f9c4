"""Values that jobs, traces and rules share: why a value is missing, subjects, and where a job stands.

Runtime and traces both import this module; it imports the standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal


class Missing(Enum):
    """Why a value is not there. Only the first is visible to `present`."""

    ABSENT = "absent"
    NOT_RECORDED = "not recorded"
    NO_HISTORY = "no history yet"


@dataclass(frozen=True, slots=True)
class Ref:
    """A value that is a subject: its kind and canonical name on the same rank."""

    kind: str
    name: str


Phase = Literal["train", "eval"]


@dataclass(frozen=True, slots=True)
class Context:
    """What is known at every instant of a job."""

    step: int = 0
    epoch: int = 0
    microbatch: int = 0
    phase: Phase = "train"
