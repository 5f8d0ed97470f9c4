"""The results of all processes of a job, merged from the files in its folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tspec.check.verdicts import Decision, Instance, Verdicts
from tspec.runtime.messages.findings import KEPT, CountsRecord, FindingRecord
from tspec.trace.model import Location


@dataclass(frozen=True, slots=True)
class Gathered:
    """The merged results of all processes."""

    stopped: str
    """The rule that ended the job, and when; else empty."""
    verdicts: Verdicts
    counts: Mapping[str, Mapping[str, int]]
    """Rule -> verdict -> the number of its instances."""
    reasons: Mapping[str, Mapping[str, int]]
    """Rule -> why instances are idle or unknown -> their number."""


def gathered(folder: Path) -> Gathered:
    """The merged results of a folder. A process that was killed may have written more findings than it counted: its findings count."""
    counts: dict[str, dict[str, int]] = {}
    reasons: dict[str, Counter[str]] = {}
    notes: list[str] = []
    decided: list[Decision] = []
    shards: dict[str, str] = {}
    groups: dict[int, dict[str, tuple[int, ...]]] = {}
    cut_off: set[str] = set()
    stopped = ""
    for path in sorted(folder.glob("*.jsonl")):
        found = list(_findings(path))
        decided += map(_decided, found)
        for one in found:
            shards |= one["shards"]
        said = _counted(path.with_suffix(".counts.json"))
        told: dict[str, int] = {}
        for one in found:
            told[one["rule"]] = max(told.get(one["rule"], 0), one["count"])
        mine = {} if said is None else said["counts"]
        cut_off |= {
            rule for rule in mine if mine[rule].get("violated", 0) > told.get(rule, 0) >= KEPT
        }
        for rule in (*mine, *(rule for rule in told if rule not in mine)):
            total = counts.setdefault(rule, {})
            for verdict, number in mine.get(rule, {"violated": 0}).items():
                least = told.get(rule, 0) if verdict == "violated" else 0
                total[verdict] = total.get(verdict, 0) + max(number, least)
        if said is None:
            continue
        for rule, why in said["reasons"].items():
            reasons.setdefault(rule, Counter()).update(why)
        of_rank = groups.setdefault(said["rank"], {})
        of_rank |= {axis: tuple(ranks) for axis, ranks in said["groups"].items()}
        notes += [f"rank {said['rank']}: {fault}" for fault in said["faults"]]
        stopped = stopped or said["stopped"]
    # Subjects stay in the order in which each process wrote them: that of the model.
    decided.sort(key=lambda one: (one.step, one.instance.rule, one.instance.ranks, one.instance.at))
    verdicts = Verdicts(
        tuple(decided),
        tuple(dict.fromkeys(notes)),
        shards=shards,
        groups=groups,
        cut_off=frozenset(cut_off),
    )
    return Gathered(stopped, verdicts, counts, reasons)


def _findings(path: Path) -> Iterator[FindingRecord]:
    """The findings of a process, but for one that it was killed in the middle of."""
    for line in path.read_text(encoding="utf-8").splitlines():
        with suppress(ValueError):
            yield json.loads(line)


def _counted(path: Path) -> CountsRecord | None:
    """What a process counted; None if it was killed before it wrote that."""
    with suppress(FileNotFoundError):
        counted: CountsRecord = json.loads(path.read_text(encoding="utf-8"))
        return counted
    return None


def _decided(found: FindingRecord) -> Decision:
    step, place = found["at"]
    instance = Instance(
        found["rule"], tuple(found["ranks"]), (step, place), tuple(found["subjects"])
    )
    at = None if found["location"] is None else Location(**found["location"])
    return Decision(
        instance, "violated", found["reason"], found["values"], found["step"], at, found["held"]
    )
