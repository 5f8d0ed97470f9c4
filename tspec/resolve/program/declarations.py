"""The declarations of specs besides rules: the vocabulary, and tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tspec.resolve import torch_names
from tspec.resolve.program.scripts import Script
from tspec.resolve.program.types import Type
from tspec.source import Source, Span

FieldSource = tuple[Any, ...]
"""An expression as a tree: `("name", "result")`, `("literal", 3)`, `("list", (…,))`,
`("field", base, "shape")`, `("index", base, key)`, `("call", "count", (…,), (("dim", …),))`,
`("negate", x)`, and `("+", a, b)` with any of `+ - * /`."""


@dataclass(frozen=True, slots=True)
class FieldDeclaration:
    """A field of an entity or event.

    `source` is the expression that computes it in a job, over the callable's parameters, `self` and
    `result`. None stands for the argument or attribute of that name. `reads_result`: it needs the
    return value.
    """

    name: str
    type: Type
    source: FieldSource | None
    reads_result: bool


@dataclass(frozen=True, slots=True)
class EventVariant:
    """Sources of fields for some of an event's callables, from an `extend`.

    Fields that it does not name are computed as in the event's declaration.
    """

    callables: tuple[str, ...]
    fields: tuple[FieldDeclaration, ...]


@dataclass(frozen=True, slots=True)
class EventDeclaration:
    """A point of a training job: calls of some callables.

    `callables` are dotted paths, including those of every `extend`.
    """

    name: str
    module: str
    callables: tuple[str, ...]
    fields: tuple[FieldDeclaration, ...]
    family: bool = False
    """Some callable ends in `.*`: an open family, watched for inference only."""
    variants: tuple[EventVariant, ...] = ()
    bare: bool = False
    """No `event` declares it: a rule names the callable itself, and `name` is its path."""

    def fields_for(self, callable: str) -> tuple[FieldDeclaration, ...]:
        """The fields as they are computed for one of the callables."""
        for variant in self.variants:
            if callable in variant.callables:
                own = {each.name: each for each in variant.fields}
                return tuple(own.get(each.name, each) for each in self.fields)
        return self.fields

    def field(self, name: str) -> FieldDeclaration | None:
        """The field of that name, or None."""
        return next((each for each in self.fields if each.name == name), None)

    @property
    def is_operator(self) -> bool:
        """All its calls are torch's operators and layers: none changes step, epoch, micro-batch or phase."""
        return all(map(_names_operator, self.callables))


def _names_operator(path: str) -> bool:
    """`torch.matmul`, `torch.Tensor.softmax`, `torch.nn.functional.gelu`, `torch.nn.GELU.forward`."""
    first, *rest = path.split(".")
    if first != "torch" or not rest:
        return False
    if rest[:2] == ["nn", "functional"] or rest[0] == "Tensor":
        return rest[-1] != "backward"
    return len(rest) == 1 or (rest[0] == "nn" and rest[-1] == "forward" and len(rest) == 3)


@dataclass(frozen=True, slots=True)
class EntityDeclaration:
    """A kind of thing with state."""

    name: str
    plural: str
    fields: tuple[FieldDeclaration, ...]
    module: str = ""

    def field(self, name: str) -> FieldDeclaration | None:
        """The field of that name, or None."""
        return next((each for each in self.fields if each.name == name), None)


@dataclass(frozen=True, slots=True)
class GroupDeclaration:
    """Ranks that compute together; `callables` return its process group."""

    name: str
    callables: tuple[str, ...]
    module: str = ""


@dataclass(frozen=True, slots=True)
class AmbientDeclaration:
    """A name known at every moment."""

    name: str
    type: Type
    module: str = ""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The vocabulary of rules, with every `extend` merged."""

    entities: tuple[EntityDeclaration, ...]
    events: tuple[EventDeclaration, ...]
    groups: tuple[GroupDeclaration, ...]
    context: tuple[AmbientDeclaration, ...]

    def event(self, name: str) -> EventDeclaration | None:
        """The event of that name, or None."""
        return next((event for event in self.events if event.name == name), None)

    def entity(self, name: str) -> EntityDeclaration | None:
        """The entity of that name, or None."""
        return next((entity for entity in self.entities if entity.name == name), None)


def bare_event(path: str, vocabulary: Vocabulary) -> EventDeclaration:
    """A callable that a rule names itself, as an event. A module's `forward` has the fields of all."""
    forward = vocabulary.event("forward")
    owner, _, method = path.rpartition(".")
    known = not path.startswith("torch.") or torch_names.is_subclass(owner, "torch.nn.Module")
    fields = forward.fields if forward and method == "forward" and known else ()
    return EventDeclaration(path, "", (path,), fields, path.endswith(".*"), bare=True)


# --- tests --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExpectedOutcome:
    """`violates RULE at step 3 on rank 1 for "w"`, or `passes RULE`."""

    rule: str | None
    """Its qualified name; None for `all others`."""
    violated: bool
    span: Span = field(compare=False, repr=False)
    steps: tuple[int, int] | None = None
    """The first and the last step in which a violation is expected; None: in some step."""
    rank: int | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class TestRecording:
    """The recorded trace that a test reads; the path is relative to the test's file."""

    path: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TestDeclaration:
    """A test: the expected violations in a recorded or scripted trace.

    `rules` are the qualified names of the rules in the test, in order; `seen` are those of all
    rules that it may name (`all others`).
    """

    __test__ = False  # pytest: this is no test class

    title: str
    module: str
    rules: tuple[str, ...]
    source: Source = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)
    """The span of the title."""
    events: Script | TestRecording = field(repr=False)
    """Its events."""
    outcomes: tuple[ExpectedOutcome, ...] = ()
    seen: tuple[str, ...] = field(default=(), repr=False)
