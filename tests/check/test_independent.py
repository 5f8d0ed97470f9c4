"""The reference interpreter is a witness of its own: it has no text in common with what runs in jobs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tspec"
REFERENCE = ("check/interpret",)
RUNS = ("runtime", "builtin")
IN_A_ROW = 3
"""Statements that no two functions share, one after another."""

Run = tuple[str, ...]


def functions(folders: tuple[str, ...]) -> Iterator[tuple[str, ast.FunctionDef]]:
    for folder in folders:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    yield f"{path.relative_to(PACKAGE)}: {node.name}", node


def runs(function: ast.FunctionDef) -> Iterator[Run]:
    """Each few lines of a function in a row, without its docstring, as Python prints them."""
    documented = ast.get_docstring(function) is not None
    body = function.body[1:] if documented else function.body
    lines = [line.strip() for node in body for line in ast.unparse(node).splitlines()]
    for place in range(len(lines) - IN_A_ROW + 1):
        yield tuple(lines[place : place + IN_A_ROW])


def test_the_reference_has_no_lines_in_common_with_what_runs() -> None:
    of_jobs = {run: name for name, function in functions(RUNS) for run in runs(function)}
    shared = [
        (name, of_jobs[run], run)
        for name, function in functions(REFERENCE)
        for run in runs(function)
        if run in of_jobs
    ]
    assert of_jobs and shared == []
