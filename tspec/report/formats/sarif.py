"""Results as SARIF 2.1.0 (OASIS), which code scanning services read.

Rules carry their help: a code its page, a rule what its `///` says. A finding about a run is at its line
of the script, where that is known, and its rule is a related place.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tspec import __version__
from tspec.explain import codes, explain
from tspec.printable import json_text
from tspec.report.results import Region, Result, Results, RuleHelp, is_code, shown
from tspec.values import Location

LEVELS = {"error": "error", "warning": "warning", "draft": "note"}

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
"""The identifier that the standard gives its schema; readers want it in each log."""

FINGERPRINT = "tspecFinding/v1"
"""The name of our fingerprints, with the version of how they are made."""


def write(results: Results) -> str:
    """A SARIF log of one run, with a newline at its end."""
    abouts = _abouts(results)
    index = {about.rule: place for place, about in enumerate(abouts)}
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "tspec",
                "semanticVersion": __version__,
                "rules": [_descriptor(about) for about in abouts],
                **_notifications(results),
            }
        },
        # Services distinguish the logs of one tool by this id, such as those of `lint` and `run`.
        "automationDetails": {"id": f"tspec/{results.command}/" if results.command else "tspec/"},
        "columnKind": "unicodeCodePoints",
        "results": [_result(result, index) for result in results.results],
        "invocations": [
            {
                "executionSuccessful": not (results.faults or results.incomplete),
                "toolExecutionNotifications": [
                    *({"level": "error", "message": {"text": f}} for f in results.faults),
                    *map(_notification, results.incomplete),
                ],
            }
        ],
    }
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [run],
    }
    return json_text(log) + "\n"


def _notifications(results: Results) -> dict[str, Any]:
    """The descriptors of the notifications that have a code."""
    kinds = {each.rule: each for each in results.incomplete}
    found = [_descriptor(_of_page(each, explain(code))) for code, each in kinds.items()]
    return {"notifications": found} if found else {}


def _notification(incomplete: Result) -> dict[str, Any]:
    return {
        "descriptor": {"id": incomplete.rule},
        "level": LEVELS[incomplete.severity],
        "message": {"text": incomplete.message},
        "locations": [_location(incomplete.region)],
        "properties": dict(incomplete.properties),
    }


def _abouts(results: Results) -> list[RuleHelp]:
    """The descriptors of all rules that the results name or that the command checked, each once, by name."""
    found = dict(results.about)
    pages = set(codes())
    for result in results.flat():
        if result.rule not in found:
            page = explain(result.rule) if result.rule in pages else ""
            found[result.rule] = _of_page(result, page)
    return [found[rule] for rule in sorted(found)]


def _of_page(result: Result, page: str) -> RuleHelp:
    title, _, body = page.partition("\n")
    summary = title.partition(": ")[2] or result.explanation or result.rule
    return RuleHelp(result.rule, summary, body.strip() or result.explanation, result.severity)


def _descriptor(about: RuleHelp) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": about.rule,
        "shortDescription": {"text": about.summary or about.rule},
        "defaultConfiguration": {"level": LEVELS[about.severity]},
    }
    if not is_code(about.rule):
        found["name"] = about.rule.rpartition(".")[2]
    if about.help:
        found["help"] = {"text": about.help, "markdown": about.help}
    if about.properties:
        found["properties"] = dict(about.properties)
    return found


def _result(result: Result, index: dict[str, int]) -> dict[str, Any]:
    message = f"{result.message}\n{result.help}" if result.help else result.message
    at = result.in_script
    found: dict[str, Any] = {
        "ruleId": result.rule,
        "ruleIndex": index[result.rule],
        "level": LEVELS[result.severity],
        "message": {"text": message},
        "locations": [_location(result.region) if at is None else _in_script(at)],
        "partialFingerprints": {FINGERPRINT: result.fingerprint},
    }
    related = [] if at is None else [_location(result.region, f"the rule {result.rule}")]
    related += [_location(each) for each in result.related]
    related += [
        _location(each.region, f"what follows from it: {each.rule}: {each.message}")
        for each in result.consequences
    ]
    if related:
        found["relatedLocations"] = [{"id": n, **each} for n, each in enumerate(related, 1)]
    if result.properties:
        found["properties"] = dict(result.properties)
    return found


def _in_script(at: Location) -> dict[str, Any]:
    """The line of the script that a finding points at."""
    region: dict[str, Any] = {"startLine": at.line}
    if at.text:
        region["snippet"] = {"text": at.text}
    return {
        "physicalLocation": {"artifactLocation": {"uri": _uri(at.file)}, "region": region},
        "logicalLocations": [{"fullyQualifiedName": at.function, "kind": "function"}],
    }


def _location(region: Region, message: str = "") -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(region.file)}}
    if region.line:
        place = {"startLine": region.line}
        if region.column:
            place["startColumn"] = region.column
        if region.end_line:
            place["endLine"] = region.end_line
        if region.end_column:
            place["endColumn"] = region.end_column
        physical["region"] = place
    said = message or region.message
    return {"physicalLocation": physical, **({"message": {"text": said}} if said else {})}


def _uri(file: str) -> str:
    """A path below the working folder is relative, which lets the log be read elsewhere."""
    from urllib.parse import quote

    path = Path(shown(file))
    return path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))
