"""Results as JSON: a list of objects, one for each result, with its consequences in it.

Recordings that end early follow the findings, with the code TS0700 for their rule.
"""

from __future__ import annotations

from typing import Any

from tspec.printable import json_text
from tspec.report.results import Result, Results


def write(results: Results) -> str:
    """A JSON list with a newline at its end. The fields of each object are those of `as_object`."""
    found = [as_object(each, results) for each in (*results.results, *results.incomplete)]
    return json_text(found) + "\n"


def as_object(result: Result, results: Results) -> dict[str, Any]:
    """`rule`, `file`, `line`, `column`, `end_line`, `end_column`, `message`, `severity`, `explanation`,
    `look` (what to do next), `fingerprint`, `consequences`, and the result's own properties, such
    as `step`, `rank` and `subject`; `pack` and `version` if the rule is of a pack that has one.
    """  # fmt: skip
    about = results.about.get(result.rule)
    return {
        "rule": result.rule,
        "file": result.file,
        "line": result.line,
        "column": result.column,
        "end_line": result.end_line,
        "end_column": result.end_column,
        "message": result.message,
        **result.properties,
        "severity": result.severity,
        "explanation": result.explanation,
        "look": result.help,
        "fingerprint": result.fingerprint,
        **(about.properties if about else {}),
        "consequences": [as_object(each, results) for each in result.consequences],
    }
