"""A contract for import-linter: some modules import those of a list, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class AllowlistContract(Contract):
    """`source_modules` and what lies in them import each other, `allowed_modules` and the standard library."""

    type_name = "allowlist"
    source_modules = fields.ListField(subfield=fields.StringField())
    allowed_modules = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Kept where no import leads elsewhere."""
        found = sorted(self._elsewhere(graph))
        return ContractCheck(kept=not found, metadata={"found": found})

    def _elsewhere(self, graph: ImportGraph) -> Iterator[tuple[str, str]]:
        for importer in graph.modules:
            if not _lies_in(importer, self.source_modules):
                continue
            for imported in graph.find_modules_directly_imported_by(importer):
                if imported.partition(".")[0] in sys.stdlib_module_names:
                    continue
                if not _lies_in(imported, [*self.source_modules, *self.allowed_modules]):
                    yield importer, imported

    def render_broken_contract(self, check: ContractCheck) -> None:
        """One line for each import that is not in the list."""
        for importer, imported in check.metadata["found"]:
            output.print_error(f"{importer} imports {imported}")


def _lies_in(module: str, packages: list[str]) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in packages)
