"""Coverage as text for a terminal, as JSON, and as LCOV for tools that show covered lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from tspec.printable import visible
from tspec.testing.coverage import Coverage, RuleCoverage
from tspec.why.place import place

WIDTH = 80
_WORDS = {"TS0610": "vacuous", "TS0611": "blind", "TS0612": "unproven", "TS0614": "never held"}


def as_text(coverage: Coverage) -> str:
    """The uncovered items, by rule, with a summary below."""
    lines = [line for each in coverage.rules if each.gaps for line in _rule(each)]
    return "\n".join([*lines, *([""] if lines else []), *summary(coverage)])


def _rule(covered: RuleCoverage) -> Iterator[str]:
    numbers = ", ".join(f"{verdict} {n:,}" for verdict, n in covered.verdicts.items() if n)
    yield f"{covered.rule.qualified}: {numbers or 'no instance'}"
    for gap in covered.gaps:
        said = f"  {place(gap.source, gap.span)} {gap.code} {gap.message}"
        yield from textwrap.wrap(
            visible(said), WIDTH, subsequent_indent="    ", break_on_hyphens=False
        )


def summary(coverage: Coverage) -> list[str]:
    """The number of covered rules and conditions, and the number of rules for each kind of gap."""
    gaps = [gap for each in coverage.rules for gap in each.gaps]
    conditions = [seen for each in coverage.rules for seen in each.conditions]
    both = sum(bool(seen.true and seen.false) for seen in conditions)
    words = [
        f"{number} {word}"
        for code, word in _WORDS.items()
        if (number := sum(gap.code == code for gap in gaps))
    ]
    full = sum(not each.gaps for each in coverage.rules)
    return [
        f"Coverage {_percent(coverage)}: {full} of {len(coverage.rules)} rules seen in full, "
        f"{both} of {len(conditions)} conditions both ways",
        *([", ".join(words)] if words else []),
    ]


def _percent(coverage: Coverage) -> str:
    # Never 100 where something is missing.
    return f"{int(coverage.percent * 10) / 10:g}%"


def as_plain(coverage: Coverage) -> dict[str, Any]:
    """Coverage as JSON holds it."""
    return {
        "percent": round(coverage.percent, 2),
        "rules": [_plain(each) for each in coverage.rules],
    }


def _plain(covered: RuleCoverage) -> dict[str, Any]:
    rule = covered.rule
    return {
        "rule": rule.qualified,
        "file": rule.source.path,
        "line": rule.source.position(rule.span.start).line,
        **{str(verdict): number for verdict, number in covered.verdicts.items()},
        "state": next((_WORDS[g.code] for g in covered.gaps if g.code in _WORDS), "seen"),
        "conditions": [
            {
                "clause": seen.condition.clause,
                "condition": seen.condition.text,
                "line": rule.source.position(seen.condition.span.start).line,
                "true": seen.true,
                "false": seen.false,
            }
            for seen in covered.conditions
        ],
        "gaps": [
            {"code": g.code, "message": g.message, "line": g.source.position(g.span.start).line}
            for g in covered.gaps
        ],
    }


def as_lcov(coverage: Coverage) -> str:
    """LCOV: a rule is a function that was hit as often as it was decided, a condition a branch."""
    lines: list[str] = []
    for path in dict.fromkeys(each.rule.source.path for each in coverage.rules):
        lines += ["TN:tspec", f"SF:{visible(path)}"]
        for each in coverage.rules:
            if each.rule.source.path == path:
                lines += _lcov(each)
        lines.append("end_of_record")
    return "\n".join(lines) + "\n" if lines else ""


def _lcov(covered: RuleCoverage) -> Iterator[str]:
    rule = covered.rule
    line = rule.source.position(rule.span.start).line
    decided = covered.verdicts["holds"] + covered.verdicts["violated"]
    yield f"FN:{line},{rule.qualified}"
    yield f"FNDA:{decided},{rule.qualified}"
    yield f"DA:{line},{decided}"
    yield f"BRDA:{line},0,0,{covered.verdicts['holds'] or '-'}"
    yield f"BRDA:{line},0,1,{covered.verdicts['violated'] or '-'}"
    for number, seen in enumerate(covered.conditions, 1):
        at = rule.source.position(seen.condition.span.start).line
        yield f"BRDA:{at},{number},0,{seen.true or '-'}"
        yield f"BRDA:{at},{number},1,{seen.false or '-'}"
