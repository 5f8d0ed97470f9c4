"""Tiny traces, written as one writes down what a job did, and rules from text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from tspec.check.interpret import interpret
from tspec.check.verdicts import Decision, Verdicts
from tspec.resolve import load_text
from tspec.resolve.program.rules import Rule
from tspec.trace.model import (
    Begin,
    Boundary,
    Context,
    End,
    Finish,
    Location,
    Record,
    Sample,
    Stream,
    Tensor,
    Trace,
)

HEAD = """edition 2026

module t

use std.torch

extend entity parameter {
  lr: float
  order: int
}

"""


def tensor(digest: int | None = 0, **features: Any) -> Tensor:
    """A tensor of which some features were recorded."""
    return Tensor(digest=digest, **features)


class Writer:
    """One rank's stream, as it is written. Each edge is one instant; samples share the last one's."""

    def __init__(self, rank: int = 0, *, seq: int = 0, step: int = 0) -> None:
        self.rank = rank
        self.seq = seq
        self.context = Context(step=step)
        self.records: list[Record] = []
        self.open: list[int] = []
        self.calls = 0

    def _tick(self) -> int:
        self.seq += 1
        return self.seq

    def _line(self) -> Location:
        """A line of its own for each instant."""
        return Location("train.py", self.seq + 1, "main")

    def _opens(self, span: Literal["step", "microbatch", "epoch"], index: int) -> None:
        line = self._line()
        self.records.append(Boundary(self._tick(), self.context, span, index, line))

    def now(self, **context: Any) -> None:
        """Change the context of what follows."""
        self.context = replace(self.context, **context)

    def step(self, index: int) -> None:
        """A step opens."""
        self.now(step=index, microbatch=0)
        self._opens("step", index)

    def microbatch(self, index: int) -> None:
        """A microbatch opens."""
        self.now(microbatch=index)
        self._opens("microbatch", index)

    def epoch(self, index: int) -> None:
        """An epoch opens."""
        self.now(epoch=index)
        self._opens("epoch", index)

    def sample(self, kind: str, subject: str, gone: bool = False, **fields: Any) -> None:
        """Fields of a subject, at the instant of the last edge."""
        self.records.append(Sample(self.seq, self.context, kind, subject, fields, gone))

    def ambient(self, **fields: Any) -> None:
        """Context values such as the loss."""
        self.sample("context", "", **fields)

    def group(self, axis: str, *ranks: int) -> None:
        """This rank's peers on an axis."""
        self.sample("group", axis, ranks=ranks)

    def begin(self, event: str, /, **fields: Any) -> int:
        """A call begins; its number."""
        self.calls += 1
        parent = self.open[-1] if self.open else None
        line = self._line()
        self.records.append(
            Begin(self._tick(), self.context, self.calls, parent, event, event, fields, line)
        )
        self.open.append(self.calls)
        return self.calls

    def end(self, call: int | None = None, error: str | None = None, **fields: Any) -> None:
        """A call returns: the innermost one."""
        number = self.open.pop() if call is None else call
        if number in self.open:
            self.open.remove(number)
        self.records.append(End(self._tick(), self.context, number, fields, error))

    def call(self, event: str, /, result: Mapping[str, Any] | None = None, **fields: Any) -> None:
        """A call that begins and returns."""
        self.begin(event, **fields)
        self.end(**(result or {}))

    @contextmanager
    def calling(self, event: str, /, **fields: Any) -> Iterator[None]:
        """A call in which other things happen."""
        self.begin(event, **fields)
        yield
        self.end()

    def finish(self, empty_step: bool = False) -> None:
        """The run ends normally, perhaps in a step in which nothing was trained."""
        line = self._line()
        self.records.append(Finish(self._tick(), self.context, line, empty_step))

    def stream(self) -> Stream:
        """All that was written."""
        return Stream(self.rank, tuple(self.records))


def trace(*writers: Writer, world: int | None = None) -> Trace:
    """The job of which these are the ranks."""
    streams = tuple(writer.stream() for writer in writers)
    return Trace(streams, len(writers) if world is None else world)


def rules(*texts: str, head: str = HEAD) -> Sequence[Rule]:
    """The rules of a spec; `text` is the body of an invariant, or whole declarations."""
    whole = head
    for place, text in enumerate(texts):
        is_body = not text.lstrip().startswith(("invariant", "let", "entity", "event", "extend"))
        whole += f"invariant r{place} {{\n{text}\n}}\n" if is_body else f"{text}\n"
    loaded = load_text(whole)
    assert loaded.program is not None, [str(each) for each in loaded.diagnostics]
    return loaded.program.rules


def decide(text: str, *writers: Writer, world: int | None = None) -> Verdicts:
    """What the interpreter makes of one rule and a job."""
    return interpret(rules(text), trace(*writers, world=world))


def table(found: Verdicts) -> dict[tuple[Any, ...], str]:
    """(at, subjects), with ranks in front if they are several, -> verdict."""
    return {_short(each): each.verdict for each in found.decided}


def _short(decided: Decision) -> tuple[Any, ...]:
    key = decided.instance
    return (key.at, *key.subjects) if len(key.ranks) == 1 else (key.ranks, key.at, *key.subjects)


def verdicts(text: str, *writers: Writer, world: int | None = None) -> list[str]:
    """The verdicts of all instances, in order."""
    return [each.verdict for each in decide(text, *writers, world=world).decided]


def value_is(expr: str, *writers: Writer, **names: Any) -> str:
    """Whether a condition holds, read at the end of the run on rank 0: a verdict."""
    found = verdicts(f"each run expect {expr}", *writers)
    assert len(found) == 1
    return found[0]


def losses(*values: Any) -> Writer:
    """One step for each loss."""
    out = Writer()
    for step, value in enumerate(values, start=1):
        out.step(step)
        out.call("backward")
        out.ambient(loss=value)
    out.finish()
    return out
