"""The contract on the rooms' imports tells an import that no edge allows, and an edge that none takes."""

from __future__ import annotations

import pytest
from grimp import ImportGraph

from tests.edges import EdgesContract

ROOMS = ("check", "plan", "report")


@pytest.mark.parametrize(
    ("edges", "new", "unused"),
    [
        (["check -> plan", "report -> check, plan"], [], []),
        (["report -> check, plan"], [("tspec.check.a", "tspec.plan.b")], []),
        (["check -> plan, report", "report -> check, plan"], [], ["check -> report"]),
    ],
)
def test_edges(edges: list[str], new: list[tuple[str, str]], unused: list[str]) -> None:
    graph = ImportGraph()
    for importer, imported in (
        ("tspec.check.a", "tspec.plan.b"),
        ("tspec.check.a", "tspec.check.c"),
        ("tspec.check.a", "tspec.runtime.d"),
        ("tspec.report", "tspec.check"),
        ("tspec.report.e", "tspec.plan.b"),
    ):
        graph.add_import(importer=importer, imported=imported)
    options = {"rooms": ROOMS, "edges": edges}
    found = EdgesContract("rooms", {}, options).check(graph, verbose=False)
    assert found.kept == (not new and not unused)
    assert (found.metadata["new"], found.metadata["unused"]) == (new, unused)
