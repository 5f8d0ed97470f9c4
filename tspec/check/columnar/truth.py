"""In which instances rules are true and in which they are false, in several traces: for inference.

Planning queries takes most of the time of small traces, so these are decided together, as if their
ranks were those of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tspec.check.columnar.decide import frame
from tspec.check.columnar.facts import LoadedTraces, features_of, load_several
from tspec.check.columnar.work import CheckOptions, decide_all
from tspec.resolve.program.rules import Rule
from tspec.trace.model import Trace

_ROWS = 1_000_000
"""Most rows that are decided together: about 50 MB of recordings."""


@dataclass(frozen=True, slots=True)
class InstanceTruths:
    """For each rule the number of each instance of a trace that held or was violated, and whether it held;
    and the rules that no query can express.

    Rules with the same subjects, groups and window have the same numbers for the same instances.
    """

    of: Mapping[str, list[tuple[int, bool]]]
    failed: tuple[Rule, ...]


def truth(
    rules: Sequence[Rule], traces: Sequence[Path | str | Trace]
) -> tuple[InstanceTruths, ...]:
    """The instances of each trace in which each rule is true, and in which it is not: what `check` says,
    in less time. Raises TraceError if there is no trace.

    Each trace alone has rules that look across ranks, and rules that no query can express for all
    traces, as where a value is a number in one of them and text in another.
    """
    found: list[InstanceTruths] = []
    for several in load_several(traces, features_of(rules), _ROWS):
        if several.number == 1:
            found += _truth(rules, several)
            continue
        joint = _truth([rule for rule in rules if not rule.across], several)
        failed = {frame(rule) for each in joint for rule in each.failed}
        rest = [rule for rule in rules if rule.across or frame(rule) in failed]
        for trace, each in zip(traces[several.first :], joint, strict=False):
            found.append(_with(each, truth(rest, [trace])[0]) if rest else each)
    return tuple(found)


def _truth(rules: Sequence[Rule], several: LoadedTraces) -> list[InstanceTruths]:
    """That of each of several traces, from all of their rows."""
    outcome = decide_all(rules, several.whole, CheckOptions(False, False, True))
    failed = tuple(rule for rule in rules if id(rule) in outcome.failed)
    found = [
        InstanceTruths({rule.name: [] for rule in rules}, failed) for _ in range(several.number)
    ]
    for rule in rules:
        for rank, instance, holds in outcome.truth.get(id(rule), ()):
            found[rank // several.ranks].of[rule.name].append((instance, holds))
    return found


def _with(joint: InstanceTruths, alone: InstanceTruths) -> InstanceTruths:
    return InstanceTruths({**joint.of, **alone.of}, alone.failed)
