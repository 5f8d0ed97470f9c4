"""Results as text for a terminal: each as its command shows it, or on one line."""

from __future__ import annotations

from tspec.printable import lines, visible
from tspec.report.results import Result, Results, shown


def write(results: Results) -> str:
    """Each result with its excerpt where it has one; consequences are indented below their cause."""
    blocks = [block(result) for result in (*results.results, *results.incomplete)]
    blocks += [f"tspec failed: {visible(fault)}" for fault in results.faults]
    joined = "\n\n".join(blocks)
    return lines(f"{joined}\n") if joined else ""


def block(result: Result) -> str:
    """One result."""
    if result.text:
        return result.text
    found = [line(result)]
    if result.location is not None:
        found.append(f"  {visible(result.location.sentence)}")
    found += [f"  {line(each)}" for each in result.consequences]
    if result.help:
        found.append(f"  = {visible(result.help)}")
    return "\n".join(found)


def line(result: Result) -> str:
    """One result on one line: `specs/a.tspec:4:11: error[TS0110]: ...`."""
    place = ":".join([shown(result.file), *(str(n) for n in (result.line, result.column) if n)])
    return visible(f"{place}: {result.severity}[{result.rule}]: {result.message}")
