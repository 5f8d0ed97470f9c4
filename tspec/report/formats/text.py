"""Results as text for a terminal: each as its command shows it, or on one line."""

from __future__ import annotations

from tspec.report.results import Result, Results, shown


def write(results: Results) -> str:
    """Each result with its excerpt where it has one; consequences are indented below their cause."""
    blocks = [block(result) for result in results.results]
    blocks += [f"tspec failed: {fault}" for fault in results.faults]
    joined = "\n\n".join(blocks)
    return f"{joined}\n" if joined else ""


def block(result: Result) -> str:
    """One result."""
    if result.text:
        return result.text
    lines = [line(result)]
    lines += [f"  {line(each)}" for each in result.consequences]
    if result.help:
        lines.append(f"  = {result.help}")
    return "\n".join(lines)


def line(result: Result) -> str:
    """One result on one line: `specs/a.tspec:4:11: error[TS0110]: ...`."""
    place = ":".join([shown(result.file), *(str(n) for n in (result.line, result.column) if n)])
    return f"{place}: {result.severity}[{result.rule}]: {result.message}"
