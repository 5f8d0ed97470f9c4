"""Small rules and verdicts, built by hand, for the tests of reports."""

from collections.abc import Iterable

from tspec.builtin.actions import ActionName
from tspec.check.verdicts import Decision, Instance, Verdicts
from tspec.reasons import Verdict
from tspec.resolve.program import rules
from tspec.resolve.program.types import BOOL, FLOAT, TENSOR, CallOf, Entity, ListOf
from tspec.source import NOWHERE, Source, Span
from tspec.values import Location

VOCABULARY = rules.Vocabulary(
    entities=(),
    events=(
        rules.EventDeclaration("dropout", "std.torch", ("torch.nn.functional.dropout",), ()),
        rules.EventDeclaration("optimizer.step", "std.torch", ("torch.optim.Optimizer.step",), ()),
    ),
    groups=(),
    context=(),
)

STEP = rules.Window("each", span="step")
BEFORE_UPDATE = rules.Window("before", event=rules.EventPattern(("optimizer.step",)))
AFTER_UPDATE = rules.Window("after", event=rules.EventPattern(("optimizer.step",)))


def rule(
    name: str,
    claim: rules.Claim,
    *,
    over: str = "",
    window: rules.Window = STEP,
    across: bool = False,
    draft: bool = False,
    actions: tuple[ActionName, ...] = ("warn",),
) -> rules.Rule:
    """A rule over all subjects of a kind (`over`), or over none."""
    text = f"edition 2026\n\n/// What {name} is for.\ninvariant {name} {{\n  each step\n}}\n"
    start = text.index(name, text.index("invariant"))
    return rules.Rule(
        name=name,
        module="checks",
        source=Source("checks.tspec", text),
        span=Span(start, start + len(name)),
        doc=f"What {name} is for.\n\nLook at: where the loop\nneeds {name}.",
        draft=draft,
        subjects=(rules.For("p", subjects_of(over)),) if over else (),
        across=(rules.Axis("world"),) if across else (),
        window=window,
        when=None,
        expect=claim,
        responses=tuple(rules.Response(action) for action in actions),
    )


def subjects_of(kind: str) -> rules.Expr:
    if kind.startswith("calls:"):
        event = kind.removeprefix("calls:")
        return rules.Calls(ListOf(CallOf(event)), NOWHERE, rules.EventPattern((event,)))
    return rules.Subjects(ListOf(Entity(kind)), NOWHERE, kind)


def contains(event: str) -> rules.Claim:
    return rules.Contains(rules.EventPattern((event,)))


def below(feature: str = "norm", field: str = "grad", kind: str = "parameter") -> rules.Claim:
    """`norm(p.grad) <= 100`."""
    return rules.Holds(
        rules.Compare(
            BOOL, NOWHERE, "<=", read(feature, field, kind), rules.Constant(FLOAT, NOWHERE, 100.0)
        )
    )


def read(feature: str, field: str, kind: str = "parameter") -> rules.Feature:
    variable = rules.Variable(Entity(kind), NOWHERE, "p")
    return rules.Feature(FLOAT, NOWHERE, feature, rules.Field(TENSOR, NOWHERE, variable, field))


def changes() -> rules.Claim:
    """`changed(p.data)`."""
    now = read("digest", "data")
    return rules.Holds(rules.Compare(BOOL, NOWHERE, "!=", rules.Old(FLOAT, NOWHERE, now), now))


def alike() -> rules.Claim:
    """`same(p.data)` over a group of ranks."""
    return rules.Holds(rules.Fold(BOOL, NOWHERE, "same", read("digest", "data"), "group"))


def call_field(event: str, field: str) -> rules.Claim:
    """`c.training == false`."""
    variable = rules.Variable(CallOf(event), NOWHERE, "c")
    value = rules.Field(BOOL, NOWHERE, variable, field)
    return rules.Holds(
        rules.Compare(BOOL, NOWHERE, "==", value, rules.Constant(BOOL, NOWHERE, False))
    )


def own_field(kind: str, field: str) -> rules.Claim:
    """A claim that reads one field of an entity: `p.requires_grad`."""
    return rules.Holds(
        rules.Field(BOOL, NOWHERE, rules.Variable(Entity(kind), NOWHERE, "p"), field)
    )


def decided(
    of: rules.Rule,
    steps: Iterable[int],
    *,
    subject: str | tuple[str, ...] = (),
    ranks: tuple[int, ...] = (0,),
    verdict: Verdict = "violated",
    reason: str = "",
    values: dict[str, str] | None = None,
    location: Location | None = None,
) -> list[Decision]:
    subjects = (subject,) if isinstance(subject, str) else subject
    return [
        Decision(
            Instance(of.qualified, ranks, (step, 0), subjects),
            verdict,
            reason,
            values or {},
            step,
            location,
        )
        for step in steps
    ]


def verdicts(*found: list[Decision]) -> Verdicts:
    return Verdicts(tuple(one for part in found for one in part))


def program(*of: rules.Rule) -> rules.Program:
    return rules.Program(of, VOCABULARY)
