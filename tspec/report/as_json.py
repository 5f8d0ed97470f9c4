"""Findings as JSON: a list of objects, one for each cause, in the order of the terminal report."""

from __future__ import annotations

import dataclasses
import json

from tspec.report.findings import Report


def as_json(report: Report) -> str:
    """The findings as a JSON list, with a newline at its end.

    Each object has `rule`, `file`, `line`, `step`, `rank`, `subject`, `message` and the other fields of
    `Finding`; `consequences` is a list of such objects.
    """
    findings = [dataclasses.asdict(finding) for finding in report.findings]
    return json.dumps(findings, indent=2, ensure_ascii=False) + "\n"
