"""The typing environment of an expression: the names in scope, the clause, and the values known to
be present.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, Protocol

from tspec.diagnostics import Related
from tspec.resolve.expressions.presence import is_known
from tspec.resolve.findings import Findings
from tspec.resolve.names.scope import Scope
from tspec.resolve.program import rules
from tspec.resolve.program.types import Optional, Type, plain
from tspec.source import Span
from tspec.syntax import nodes

Clause = Literal["let", "for", "across", "window", "when", "expect"]


class Refused(Exception):
    """An error was reported. Whatever contains the expression has no type either."""


class Lowering(Protocol):
    """Types an expression; `want` is the type of the value that it is compared with."""

    def __call__(
        self, node: nodes.Expr, env: Environment, want: Type | None = None
    ) -> rules.Expr: ...


@dataclass(frozen=True)
class Environment:
    """Everything that the type of an expression depends on besides its text."""

    scope: Scope
    findings: Findings
    lowering: Lowering
    clause: Clause
    variables: Mapping[str, Type]
    window: rules.Window | None = None
    across: bool = False
    facts: frozenset[rules.Expr] = frozenset()
    """Optional values that are known to be present."""
    folded: bool = False
    """In the argument of a fold over the group."""
    trusted: bool = False
    """A condition that may guard optional values has an error: unguarded ones are not reported."""
    unknown: frozenset[str] = frozenset()
    """Variables whose collection has an error: their uses are refused without another report."""

    def lower(self, node: nodes.Expr, want: Type | None = None) -> rules.Expr:
        """Type an expression. Raises Refused after reporting an error."""
        return self.lowering(node, self, want)

    def lower_all(
        self, given: tuple[nodes.Expr, ...], want: Type | None = None
    ) -> tuple[rules.Expr, ...]:
        """Type several expressions. Reports the errors of all before it raises Refused."""
        found = []
        failed = False
        for node in given:
            try:
                found.append(self.lower(node, want))
            except Refused:
                failed = True
        if failed:
            raise Refused
        return tuple(found)

    def knowing(self, facts: frozenset[rules.Expr]) -> Environment:
        """This environment with more values that are known to be present."""
        return replace(self, facts=self.facts | facts)

    def trusting(self, variable: str | None = None) -> Environment:
        """This environment after an error, without reports of consequences of that error."""
        unknown = self.unknown if variable is None else self.unknown | {variable}
        return replace(self, trusted=True, unknown=unknown)

    def refuse(
        self,
        code: str,
        message: str,
        at: nodes.Node | Span,
        hint: str | None = None,
        related: tuple[Related, ...] = (),
    ) -> NoReturn:
        """Report an error and raise Refused."""
        self.report(code, message, at, hint, related)
        raise Refused

    def report(
        self,
        code: str,
        message: str,
        at: nodes.Node | Span,
        hint: str | None = None,
        related: tuple[Related, ...] = (),
    ) -> None:
        """Report an error and go on."""
        span = at.span if isinstance(at, nodes.Node) else at
        self.findings.add(code, message, (self.scope.source, span), hint=hint, related=related)

    def there(self, value: rules.Expr) -> Type:
        """The type of a value that is used. Raises Refused unless it is known to be present."""
        absent = isinstance(value.type, Optional) and not self.trusted
        if absent and not is_known(value, self.facts):
            text = self.scope.source.slice(value.span)
            # An inlined `let` belongs to another text, so its name is shown.
            shown = f"`{text}`" if text and "\n" not in text else "this"
            self.refuse(
                "TS0132",
                f"{shown} may be absent",
                value.span,
                f"guard it: `present({text})` in `when`, or before it with `and` or `implies`",
            )
        return plain(value.type)
