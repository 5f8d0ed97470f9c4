"""A contract for import-linter: the rooms of a package import one another by the edges of a list only."""

from __future__ import annotations

from collections.abc import Mapping

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class EdgesContract(Contract):
    """Each of `edges` says what one room imports of the others, as `check -> plan, targets`.

    A room is a package with all that lies in it, by its name in the root package. Rooms without an edge import
    no other room. An edge that no import takes is a fault as well.
    """

    type_name = "edges"
    rooms = fields.ListField(subfield=fields.StringField())
    edges = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Kept where the imports between rooms are those edges."""
        asked = {(room, other) for line in self.edges for room, other in _edges_of(line)}
        taken = self._taken(graph)
        new = sorted(taken[edge] for edge in taken.keys() - asked)
        unused = sorted(" -> ".join(edge) for edge in asked - taken.keys())
        return ContractCheck(kept=not (new or unused), metadata={"new": new, "unused": unused})

    def _taken(self, graph: ImportGraph) -> Mapping[tuple[str, str], tuple[str, str]]:
        """Each pair of rooms of which one imports the other, with an import that does."""
        found = {}
        for importer in sorted(graph.modules):
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                room, other = _room(importer), _room(imported)
                if room != other and {room, other} <= {*self.rooms}:
                    found.setdefault((room, other), (importer, imported))
        return found

    def render_broken_contract(self, check: ContractCheck) -> None:
        """One line for each import that no edge allows, and for each edge without an import."""
        for importer, imported in check.metadata["new"]:
            output.print_error(f"{importer} imports {imported}")
        for edge in check.metadata["unused"]:
            output.print_error(f"{edge}: no import takes this edge")


def _room(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]


def _edges_of(line: str) -> list[tuple[str, str]]:
    room, others = line.split(" -> ")
    return [(room, other) for other in others.split(", ")]
