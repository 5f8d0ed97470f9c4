"""Random traces over the vocabulary of `vocabulary.py`: several ranks that mostly do the same.

One script is drawn for all ranks; each rank then plays it with faults of its own, so that groups
agree often enough to hold and differ often enough to be violated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Literal

from tests.check.building import Writer
from tspec.builtin.features import FEATURES
from tspec.trace.model import Missing, Ref, Stream, Tensor, Trace

PARAMETERS = ("a", "b", "c")
MODULES = ("m", "m.inner")
CLASSES = (
    "torch.nn.modules.linear.Linear torch.nn.Linear torch.nn.Module",
    "torch.nn.ReLU torch.nn.Module",
    "train.Other",
)
NUMBERS = (0.0, 0.5, 1.0, 1.0, 2.0, 2.5, -1.0, 3.0)
ODD = (math.nan, math.inf, -math.inf, -0.0, 1e300, 1e-300)


@dataclass(frozen=True)
class Shape:
    """How large a job is and how much goes wrong in it."""

    seed: int
    ranks: int = 2
    steps: int = 3
    lone: float = 0.1
    """How often a rank does something else than the others."""
    faults: float = 0.1
    """How often something is not recorded."""
    cut: bool = False
    """Whether ranks may die."""


def random_shape(dice: Random) -> Shape:
    """A small job of any kind."""
    return Shape(
        seed=dice.randrange(2**32),
        ranks=dice.choice([2, 2, 3, 4, 4, 1]),
        steps=dice.randint(1, 5),
        lone=dice.choice([0.0, 0.01, 0.05]),
        faults=dice.choice([0.0, 0.03, 0.1]),
        cut=dice.random() < 0.5,
    )


Draw = Callable[[Random], Any]


def one_of(*items: Any) -> Draw:
    """A choice."""
    return lambda dice: dice.choice(items)


def chance(share: float) -> Draw:
    """A bool that is true in that share of cases."""
    return lambda dice: dice.random() < share


def optional(draw: Draw) -> Draw:
    """A value that is absent now and then."""
    return lambda dice: Missing.ABSENT if dice.random() < 0.25 else draw(dice)


def number(dice: Random) -> float:
    """A float, now and then one with a catch."""
    return dice.choice(ODD) if dice.random() < 0.1 else dice.choice(NUMBERS)


def tensor(dice: Random) -> Tensor:
    """Recorded features, of which one or two may lack; they need not fit each other."""
    numel = dice.choice([0, 1, 4, 6])
    features: dict[str, Any] = {
        "digest": dice.choice([1, 2, 3, -4, 2**63 - 1]),
        "norm": abs(number(dice)),
        "mean": number(dice),
        "std": abs(number(dice)),
        "min": number(dice),
        "max": number(dice),
        "sum": number(dice),
        "finite": dice.random() < 0.8,
        "zeros": min(dice.choice([0, 0, 1, 4]), numel),
        "numel": numel,
        "shape": dice.choice([(2, 3), (4,), (), (2, 2)]),
        "dtype": dice.choice(["float32", "bfloat16"]),
        "device": dice.choice(["cpu", "cuda:0", "cuda:1"]),
        "requires_grad": dice.random() < 0.7,
        "object": dice.choice([7, 8]),
    }
    for row in FEATURES.values():
        if row.passes and row.name not in features:
            count = min(dice.choice([0, 0, 1, 4]), numel)
            features[row.name] = count if row.kind == "int" else abs(number(dice))
    if dice.random() < 0.05:
        del features[dice.choice(sorted(features))]
    return Tensor(**features)


def some(draw: Draw, *counts: int) -> Draw:
    """A list."""
    return lambda dice: tuple(draw(dice) for _ in range(dice.choice(counts)))


def members(dice: Random) -> frozenset[Ref]:
    """The parameters of a module."""
    return frozenset(Ref("parameter", each) for each in PARAMETERS if dice.random() < 0.6)


def attributes(dice: Random) -> dict[str, Any]:
    """A module's plain values."""
    pairs = {"width": dice.choice([1, 2, 8]), "kind": dice.choice(["x", True, 0.5])}
    return dict(list(pairs.items())[: dice.choice([0, 1, 2, 2])])


MODULE = one_of(*(Ref("module", name) for name in MODULES))
PARAMETER: Mapping[str, Draw] = {
    "data": tensor,
    "grad": optional(tensor),
    "requires_grad": chance(0.7),
    "lr": number,
    "order": one_of(0, 1, 2),
    "module": MODULE,
    "names": one_of(frozenset({"x"}), frozenset({"x", "y"}), frozenset()),
    "label": one_of("weight", "bias", "layer.weight"),
}
FIELDS: Mapping[str, Mapping[str, Draw]] = {
    "parameter": PARAMETER,
    "module": {
        "class": one_of(*CLASSES),
        "training": chance(0.6),
        "parameters": members,
        "attributes": attributes,
        "next": optional(MODULE),
    },
    "batch": {"tensors": some(tensor, 0, 1, 2), "size": one_of(1, 2, 4)},
    "context": {"loss": number, "enabled": chance(0.5)},
}
ARGUMENTS: Mapping[str, Mapping[str, Draw]] = {
    "forward": {
        "module": MODULE,
        "inputs": some(tensor, 1, 1, 2),
        "splits": one_of((1, 2), (2, 2), (1, 1, 1), (2,)),
        "limit": optional(one_of(0, 1, 2)),
    },
    "update": {"module": MODULE, "lr": one_of(*NUMBERS)},
    "save": {"tag": one_of("last", "best")},
}
RESULTS: Mapping[str, Mapping[str, Draw]] = {
    "forward": {"output": optional(tensor), "cost": number},
    "update": {"ok": chance(0.7)},
    "save": {},
}


@dataclass(frozen=True)
class Op:
    """One line of the script that all ranks play. `draws` says how a rank would choose by itself."""

    kind: Literal["begin", "end", "sample", "step", "microbatch", "epoch", "phase", "finish"]
    name: str = ""
    subject: str = ""
    index: int = 0
    fields: Mapping[str, Any] = field(default_factory=dict)
    draws: Mapping[str, Draw] = field(default_factory=dict)
    gone: bool = False
    """Of a sample: the subject is no more. Of a call: it is on a thread of its own."""


class Script:
    """What happens in a job, on all ranks alike."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.dice = Random(shape.seed)
        self.ops: list[Op] = []
        self.batches = 0
        self.calls = 0
        self.there: set[str] = set()
        self.waiting: list[tuple[int, int]] = []
        """(place in the script, call that returns there)"""

    def _add(self, kind: Any, draws: Mapping[str, Draw], share: float = 1.0, **rest: Any) -> None:
        fields = {
            name: draw(self.dice) for name, draw in draws.items() if self.dice.random() < share
        }
        self.ops.append(Op(kind, fields=fields, draws=draws, **rest))

    def write(self) -> Sequence[Op]:
        """The whole run."""
        dice, epoch = self.dice, 0
        self._groups()
        self._state(1.0)
        if dice.random() < 0.3:
            self._call("save")
        for step in range(1, self.shape.steps + 1):
            if dice.random() < 0.3:
                self.ops.append(Op("epoch", index=epoch))
                epoch += 1
            self.ops.append(Op("step", index=step))
            self._step()
        self.ops.append(Op("finish"))
        for place, number in reversed(self.waiting):
            end = Op(
                "end",
                "forward",
                index=number,
                fields={"cost": 1.0},
                draws={"cost": one_of(1.0, 2.0)},
            )
            self.ops.insert(min(place, len(self.ops) - 1), end)
        return self.ops

    def _groups(self) -> None:
        for axis in ("dp", "tp"):
            if self.dice.random() < 0.93:
                self._add("sample", {}, name="group", subject=axis)

    def _step(self) -> None:
        dice = self.dice
        self.ops.append(Op("phase", "train"))
        if dice.random() < 0.1:
            self._outlasting()
        passes = [
            [0],
            [0],
            [0, 1],
            [0, 1, 0, 1],
        ]  # of micro-batches, under 1F1B forward and backward
        for index in dice.choice(passes):
            if dice.random() < 0.8:
                self.ops.append(Op("microbatch", index=index))
            if dice.random() < 0.7:
                self._batch()
            for _ in range(dice.choice([0, 1, 1, 2])):
                self._call("forward")
            self._state(0.2)
        if dice.random() < 0.1:
            self._in_two_threads()
        for _ in range(dice.choice([0, 1, 1, 1, 2])):
            self._call("update")
        if dice.random() < 0.3:
            self._call("save")
        self._add("sample", FIELDS["context"], 0.9, name="context")
        if dice.random() < 0.3:
            self.ops.append(Op("phase", "eval"))
            self._batch()
            self._call("forward")

    def _batch(self) -> None:
        self.batches += 1
        self._add("sample", FIELDS["batch"], name="batch", subject=f"batch{self.batches}")

    def _call(self, event: str, depth: int = 0) -> None:
        self.calls += 1
        number = self.calls
        self._add("begin", ARGUMENTS[event], name=event, index=number)
        if depth < 2 and self.dice.random() < 0.35:
            self._call(self.dice.choice([event, "forward", "update"]), depth + 1)
        self._state(0.6 if event == "update" else 0.05)
        error = "ValueError" if self.dice.random() < 0.04 else ""
        draws = {} if error else RESULTS[event]
        self._add("end", draws, name=event, index=number, subject=error)

    def _outlasting(self) -> None:
        """A call that began before the boundary, or that does not return at all, on another thread."""
        number = self._begin("forward", thread=True)
        place = self.dice.randint(1, 20)
        self._call("update")
        if self.dice.random() < 0.7:
            self.waiting.append((len(self.ops) + place, number))

    def _in_two_threads(self) -> None:
        """Two calls that overlap and do not enclose each other."""
        first, second = self._begin("update", thread=True), self._begin("forward", thread=True)
        self._state(0.3)
        self._add("end", RESULTS["update"], name="update", index=first)
        self._state(0.3)
        self._add("end", RESULTS["forward"], name="forward", index=second)

    def _begin(self, event: str, thread: bool = False) -> int:
        self.calls += 1
        self._add("begin", ARGUMENTS[event], name=event, index=self.calls, gone=thread)
        return self.calls

    def _state(self, share: float) -> None:
        """Some subjects are sampled again; all are at first."""
        for kind, names in (("parameter", PARAMETERS), ("module", MODULES)):
            for name in names:
                if self.dice.random() >= share:
                    continue
                gone = kind == "parameter" and name in self.there and self.dice.random() < 0.06
                late = share == 1.0 and self.dice.random() < 0.15
                if not late:
                    draws = {} if gone else FIELDS[kind]
                    first = name not in self.there
                    self._add(
                        "sample", draws, 1.0 if first else 0.5, name=kind, subject=name, gone=gone
                    )
                    self.there.add(name)


class Player:
    """One rank that plays the script, with faults of its own."""

    def __init__(self, shape: Shape, rank: int) -> None:
        self.shape = shape
        self.dice = Random(shape.seed * 31 + rank + 1)
        self.out = Writer(rank)
        self.skipped: set[int] = set()
        self.numbers: dict[int, int] = {}

    def play(self, ops: Sequence[Op]) -> Stream:
        """The stream of the rank."""
        for op in ops:
            self._play(op)
        return self.out.stream()

    def _fields(self, op: Op) -> dict[str, Any]:
        found = {}
        for name, value in op.fields.items():
            lone = self.dice.random() < self.shape.lone
            found[name] = op.draws[name](self.dice) if lone else value
            if self.dice.random() < self.shape.faults:
                if self.dice.random() < 0.5:
                    del found[name]
                else:
                    found[name] = Missing.NOT_RECORDED
        return found

    def _play(self, op: Op) -> None:
        out = self.out
        lone = self.dice.random() < self.shape.lone
        match op.kind:
            case "step":
                out.step(op.index)
            case "microbatch":
                out.microbatch(op.index)
            case "epoch":
                out.epoch(op.index)
            case "phase":
                out.now(phase=op.name)
            case "finish":
                out.finish(empty_step=(self.shape.seed + out.rank) % 4 == 0)
            case "begin" if lone:
                self.skipped.add(op.index)
            case "begin":
                own = self._groups_field(op)
                enclosing = list(out.open)
                if op.gone:
                    out.open.clear()
                self.numbers[op.index] = out.begin(op.name, **self._fields(op), **own)
                if op.gone:
                    out.open[:] = enclosing
            case "end" if op.index not in self.skipped:
                out.end(self.numbers[op.index], op.subject or None, **self._fields(op))
            case "sample" if op.name == "group":
                out.group(op.subject, *self._ranks(op.subject))
            case "sample" if not lone:
                own = {"ranks": self._named_ranks()} if op.name == "parameter" else {}
                fields = {} if op.gone else {**self._fields(op), **own}
                out.sample(op.name, op.subject, op.gone, **fields)

    def _ranks(self, axis: str) -> tuple[int, ...]:
        ranks = range(self.shape.ranks)
        if axis == "dp":
            return tuple(ranks)
        return tuple(rank for rank in ranks if rank // 2 == self.out.rank // 2)

    def _named_ranks(self) -> Any:
        return Missing.ABSENT if self.dice.random() < 0.03 else self._ranks("dp")

    def _groups_field(self, op: Op) -> dict[str, Any]:
        """Which group a forward is of: the same choice on all ranks, by the call's number."""
        if op.name != "forward":
            return {}
        return {"group": (self._ranks("dp"), "tp", "dp")[op.index % 3]}


def job(shape: Shape) -> Trace:
    """A random job: some ranks may die, or were never recorded."""
    ops = Script(shape).write()
    dice = Random(shape.seed + 17)
    streams = []
    for rank in range(shape.ranks):
        stream = Player(shape, rank).play(ops)
        if shape.cut and dice.random() < 0.1 and rank:
            continue
        if shape.cut and dice.random() < 0.4:
            stream = replace(stream, records=stream.records[: _cut(dice, len(stream.records))])
        streams.append(stream)
    return Trace(tuple(streams), shape.ranks)


def _cut(dice: Random, length: int) -> int:
    """Where a rank dies: rather late, so that there is something to decide."""
    return max(1, int(length * max(dice.random(), dice.random())))
