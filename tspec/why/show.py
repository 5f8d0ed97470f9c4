"""The answer to `why` as text for a terminal, and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from tspec.check.verdicts import Decision
from tspec.printable import visible
from tspec.reasons import Verdict
from tspec.why.ask import BlockingCondition, WhyAnswer
from tspec.why.conditions import OTHER
from tspec.why.look import InspectedInstance, stopped_it
from tspec.why.place import place

WIDTH = 80
_WORDS: Mapping[Verdict, str] = {
    "holds": "held",
    "violated": "violated",
    "idle": "idle",
    "unknown": "unknown",
}


def as_text(found: WhyAnswer, shown: int) -> str:
    """Counts, then fired instances, then the nearest ones, then the conditions that stopped the
    others.
    """
    rule = found.rule
    lines = [f"{rule.qualified}  {place(rule.source, rule.span)}", *_wrap(_counts(found), "  ")]
    if found.fired:
        lines += ["", "Fired:"]
        for each in found.fired[:shown]:
            lines += _fired(each)
        if len(found.fired) > shown:
            lines.append(f"  and {len(found.fired) - shown:,} more")
    if found.nearest:
        lines += ["", "Nearest to firing:" if not found.fired else "Nearest of those that did not:"]
        for each in found.nearest:
            lines += _near(each)
    if found.stopped:
        lines += ["", "What stopped the others:"]
        for stopped in found.stopped[:shown]:
            lines += _wrap(_stopped(stopped), "  ")
    if found.damaged:
        lines += ["", "Not read:"]
        for line in found.damaged:
            lines += _wrap(line, "  ")
    return "\n".join(lines)


def _counts(found: WhyAnswer) -> str:
    asked = sum(found.counts.values())
    if not found.total:
        why = "; ".join(found.missing) or "nothing that it is about was recorded"
        return f"no instance: {why}"
    if not asked:
        return f"no instance there, of {found.total:,} in the recording"
    counts = [
        f"{n:,} {_WORDS[verdict]}" for verdict in _WORDS if (n := found.counts.get(verdict, 0))
    ]
    of = f" of {found.total:,}" if asked < found.total else ""
    return f"{asked:,}{of} instance{'' if found.total == 1 else 's'}: {', '.join(counts)}"


def _fired(each: InspectedInstance) -> Iterator[str]:
    reason = f" ({each.decided.reason})" if each.decided.reason else ""
    yield from _wrap(f"{where(each.decided)}{reason}", "  ")
    if each.decided.location is not None:
        yield from _wrap(each.decided.location.sentence, "      ")
    for name, value in each.values.items():
        yield from _wrap(f"{name} = {value}", "      ")


def _near(each: InspectedInstance) -> Iterator[str]:
    decided = each.decided
    off = f", {each.off:.2%} from firing" if 0 < each.off < OTHER else ""
    if each.off == 0 and decided.verdict == "holds" and each.values:
        off = ", at the bound"
    yield from _wrap(f"{where(decided)} {_short(each)}{off}", "  ")
    for name, value in each.values.items():
        if name != each.condition:
            yield from _wrap(f"{name} = {value}", "      ")


def _short(each: InspectedInstance) -> str:
    verdict, reason = each.decided.verdict, each.decided.reason
    if verdict == "holds":
        return "held"
    if not each.condition:
        return f"was {verdict}: {reason}"
    if list(each.values) == [each.condition]:
        return f"was {verdict}: `{each.condition}` is {each.values[each.condition]}"
    return f"was {verdict}: `{each.condition}` {each.stopped_it}"


def _stopped(stopped: BlockingCondition) -> str:
    if not stopped.condition:
        return f"{stopped.instances:,} {stopped.verdict}: {stopped.reason}"
    why = stopped_it(stopped.clause, stopped.verdict, stopped.reason)
    return f"{stopped.instances:,} {stopped.verdict}: {stopped.clause} `{stopped.condition}` {why}"


def where(decided: Decision) -> str:
    """`step 3, rank 1, head.weight`."""
    ranks = decided.instance.ranks
    on = f"rank{'' if len(ranks) == 1 else 's'} {', '.join(map(str, ranks))}"
    return ", ".join([f"step {decided.step}", on, *decided.instance.subjects])


def _wrap(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        visible(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_on_hyphens=False,
    )


def as_plain(found: WhyAnswer) -> dict[str, Any]:
    """The answer as JSON holds it; all that fired is in it."""
    rule = found.rule
    return {
        "rule": rule.qualified,
        "file": rule.source.path,
        "line": rule.source.position(rule.span.start).line,
        "instances": found.total,
        "counts": {str(verdict): number for verdict, number in found.counts.items()},
        "missing": list(found.missing),
        "damaged": list(found.damaged),
        "fired": [_plain(each) for each in found.fired],
        "nearest": [_plain(each) for each in found.nearest],
        "stopped": [
            {
                "clause": each.clause, "condition": each.condition, "verdict": each.verdict,
                "reason": each.reason, "instances": each.instances,
            }
            for each in found.stopped
        ],
    }  # fmt: skip


def _plain(each: InspectedInstance) -> dict[str, Any]:
    key, location = each.decided.instance, each.decided.location
    return {
        "step": each.decided.step, "ranks": list(key.ranks), "at": list(key.at),
        "subjects": list(key.subjects), "verdict": each.decided.verdict,
        "reason": each.decided.reason, "clause": each.clause, "condition": each.condition,
        "location": None if location is None else asdict(location),
        "values": dict(each.values), "unmet": each.unmet, "distance": each.off,
    }  # fmt: skip
