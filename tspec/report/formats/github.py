"""Results as GitHub's workflow commands, which it shows beside the lines of a pull request."""

from __future__ import annotations

from tspec.printable import visible
from tspec.report.results import Result, Results, shown
from tspec.values import Location

LEVELS = {"error": "error", "warning": "warning", "draft": "notice"}


def write(results: Results) -> str:
    """A line for each result and consequence: `::error file=a.tspec,line=4,...,title=...::message`."""
    lines = [command(result) for result in (*results.flat(), *results.incomplete)]
    lines += [f"::error title=tspec failed::{escaped(fault)}" for fault in results.faults]
    return "".join(f"{line}\n" for line in lines)


def command(result: Result) -> str:
    """One workflow command. Columns are given only for a region on one line, as GitHub requires."""
    at = result.in_script
    properties = _of_result(result) if at is None else _in_script(at)
    properties["title"] = result.rule
    said = ",".join(f"{key}={escaped_property(str(value))}" for key, value in properties.items())
    rule = "" if at is None else f"the rule: {shown(result.file)}:{result.line}"
    parts = (result.message, result.in_run, line_of_script(result), rule, result.help)
    message = "\n".join(part for part in parts if part)
    return f"::{LEVELS[result.severity]} {said}::{escaped(message)}"


def _of_result(result: Result) -> dict[str, str | int]:
    properties: dict[str, str | int] = {"file": shown(result.file)}
    if result.line:
        properties["line"] = result.line
        properties["endLine"] = result.end_line or result.line
        if result.column and result.end_line == result.line:
            properties["col"] = result.column
            properties["endColumn"] = result.end_column
    return properties


def _in_script(at: Location) -> dict[str, str | int]:
    return {"file": shown(at.file), "line": at.line, "endLine": at.line}


def line_of_script(result: Result) -> str:
    """The line that a finding about a run points at, or nothing."""
    return "" if result.location is None else result.location.sentence


def escaped(text: str) -> str:
    """A command's message: percent signs and ends of lines are written as their codes.

    Other characters that cannot be printed are written as escapes.
    """
    shown = (visible(line).replace("%", "%25") for line in text.split("\n"))
    return "%0A".join(shown)


def escaped_property(text: str) -> str:
    """A command's property, which a colon or comma would end."""
    return escaped(text).replace(":", "%3A").replace(",", "%2C")
