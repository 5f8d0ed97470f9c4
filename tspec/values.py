"""Values that jobs, traces and rules share: why a value is missing, subjects, and where a job stands.

Runtime and traces both import this module; it imports the standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import Any, Literal, TypeAlias

LONGEST = 120
"""Characters of a value that are shown."""


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


Datum: TypeAlias = object
"""A value that a rule reads, or why it is missing: a number, string, bool, `Ref` or tensor, or a tuple, frozenset or map of these."""
Truth: TypeAlias = bool | Missing
"""A condition's value in Kleene's logic."""
Phase = Literal["train", "eval"]
LoopSpan = Literal["step", "microbatch", "epoch"]
"""A span of a training loop, which a boundary ends. The run is a span too, without boundaries."""


@dataclass(frozen=True, slots=True)
class Context:
    """The values known at every instant of a job."""

    step: int = 0
    epoch: int = 0
    microbatch: int = 0
    phase: Phase = "train"

    def value(self, name: str) -> int | str | None:
        """A value by the name that rules give it; None for other names."""
        match name:
            case "step":
                return self.step
            case "epoch":
                return self.epoch
            case "microbatch":
                return self.microbatch
            case "phase":
                return self.phase
        return None


STEP_OF_RUN = "run.step"
"""The context name of the value of `step_of_run`."""


def step_of_run(step: int, first: int | None) -> int:
    """The place of a step among those of its run, from 1; 0 before the first.

    `first` is the number of the first step opened in this run: 1, unless the job was resumed; None
    if no step has opened.
    """
    return 0 if first is None else max(0, step - first + 1)


@dataclass(frozen=True, slots=True)
class Location:
    """A line of source code that runs: of the user's own, where some is on the stack."""

    file: str
    """Relative to the project, with `/` on any system; the whole path of a file outside of it."""
    line: int
    """Counted from 1."""
    function: str
    """The qualified name of the function, such as `Trainer.fit`; `<module>` for the file's own code, empty if it is not known."""
    text: str = ""
    """The line, without its indentation; empty where the file cannot be read."""

    @property
    def words(self) -> str:
        """`train.py:41 in train_epoch`; of a file's own code `train.py:41`."""
        inside = f" in {self.function}" if self.function not in ("", "<module>") else ""
        return f"{self.file}:{self.line}{inside}"

    @property
    def sentence(self) -> str:
        """`at train.py:41 in train_epoch: opt.step()`."""
        return f"at {self.words}: {self.text}" if self.text else f"at {self.words}"

    @property
    def is_in_a_file(self) -> bool:
        """True if the code lies in a file, not in a text such as that of `python -c`."""
        return not self.file.startswith("<")


def with_tuples(value: Any) -> Any:
    """A value that JSON held, with tuples in place of its lists."""
    if isinstance(value, list):
        return tuple(map(with_tuples, value))
    if isinstance(value, dict):
        return {key: with_tuples(item) for key, item in value.items()}
    return value


def show(value: object) -> str:
    """A value as findings write it, in at most `LONGEST` characters."""
    shown = _show(value)
    if len(shown) <= LONGEST:
        return shown
    match value:
        case tuple():
            return shorter([_show(each) for each in value], "[]")
        case frozenset():
            return shorter(sorted(map(_show, value)), "{}")
        case Mapping():
            return shorter([f"{key}: {_show(value[key])}" for key in value], "{}")
    return shown[: LONGEST - 1] + "…"


def listed(items: Sequence[str], most: int, between: str = ", ") -> str:
    """The first items, and how many more there are: `a, b and 3 more`."""
    more = len(items) - most
    return between.join(items[:most]) + (f" and {more} more" if more > 0 else "")


def shorter(items: Sequence[str], brackets: str) -> str:
    """As many complete items as fit into `LONGEST` characters: `{embed.weight, head.bias and 26 more}`."""
    ends = accumulate(len(item) + 2 for item in items)
    fitting = sum(end + len(f" and {len(items)} more") <= LONGEST for end in ends)
    if items and not fitting:
        return f"{brackets[0]}{len(items)} items{brackets[1]}"
    return f"{brackets[0]}{listed(items, fitting)}{brackets[1]}"


def shard_in_words(whole_shape: Sequence[int], cuts: Sequence[str]) -> str:
    """A rank's part of a sharded parameter, in words: `a shard of [16, 8] (Shard(0) over tp)`."""
    return f"a shard of {show(tuple(whole_shape))} ({', '.join(cuts)})"


def observed(claim: str, reason: str, values: Mapping[str, str]) -> str:
    """The reason, or what was expected, with what was read: `expected norm(p.grad) < 10, but
    norm(p.grad) = 12.0`. A condition that is the entire claim is not repeated, since the claim fails
    where it is false.
    """
    if reason:
        read = ", ".join(f"{name} = {value}" for name, value in values.items())
        return f"{reason} ({read})" if read else reason
    said = (f"{name} = {value}" for name, value in values.items() if claim != f"expected {name}")
    return ", but ".join(filter(None, (claim, ", ".join(said))))


def about_shards(shards: Mapping[str, str]) -> str:
    """The end of a message with numbers of parameters: it names those that are sharded. Empty if
    none is.
    """
    return "".join(f"; {name} is {words}" for name, words in shards.items())


def _show(value: object) -> str:
    match value:
        case Missing():
            return value.value
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.9g}"
        case Ref():
            return value.name
        case tuple():
            return "[" + ", ".join(map(_show, value)) + "]"
        case frozenset():
            return "{" + ", ".join(sorted(map(_show, value))) + "}"
        case Mapping():
            return "{" + ", ".join(f"{key}: {_show(value[key])}" for key in value) + "}"
        case _ if hasattr(value, "digest"):  # a recorded tensor
            return "a tensor" if value.digest is None else f"digest {value.digest}"
    return str(value)
