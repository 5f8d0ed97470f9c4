"""The columns that rules read, and the fields that are kept of calls, as constants of the generated module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tspec.plan.model import RulePlan
from tspec.plan.reads import Frame
from tspec.targets.literals import literal

FRAMES: tuple[Frame, ...] = ("now", "was", "first", "within")


def wants_name(one: RulePlan, frame: Frame) -> str:
    """The name of a rule's columns at one of its instants: `R3_NOW`; empty if it reads none there."""
    return f"R{one.number}_{frame.upper()}" if one.reads.of(frame) else ""


def wants(one: RulePlan) -> Iterator[tuple[str, str]]:
    """The names of a rule's columns at its instants, with the Python for them."""
    for frame in FRAMES:
        columns = one.reads.of(frame)
        if columns:
            said = ((each.kind, each.name, each.features) for each in columns)
            yield wants_name(one, frame), want_list(said)


def want_list(columns: Iterable[tuple[str, str, tuple[str, ...]]]) -> str:
    """Python for some columns: kind, field and features of each."""
    return f"({''.join(f'{_want(*each)}, ' for each in columns).rstrip()})"


def _want(kind: str, name: str, features: tuple[str, ...]) -> str:
    said = f"kind={literal(kind)}, field={literal(name)}"
    return f"Want({said}, features={literal(features)})" if features else f"Want({said})"


def kept_field(features: tuple[str, ...], looked_up: bool) -> str:
    """Python for what is kept of a field of calls."""
    said = [f"features={literal(features)}"] if features else []
    return f"KeptField({', '.join([*said, 'looked_up=True'] if looked_up else said)})"
