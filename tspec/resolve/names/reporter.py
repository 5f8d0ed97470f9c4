"""Reports diagnostics in one file, and remembers whether there were any."""

from __future__ import annotations

from tspec.diagnostics import Related
from tspec.resolve.findings import Findings
from tspec.resolve.names.scope import Scope
from tspec.syntax import nodes


class Reporter:
    """Reports the errors of one declaration."""

    def __init__(self, scope: Scope, findings: Findings) -> None:
        self.scope = scope
        self.findings = findings
        self.failed = False

    def report(
        self,
        code: str,
        message: str,
        node: nodes.Node,
        hint: str | None = None,
        related: tuple[Related, ...] = (),
    ) -> None:
        """Note an error at a node."""
        self.failed = True
        place = (self.scope.source, node.span)
        self.findings.add(code, message, place, hint=hint, related=related)
