"""Where an expression stands: which names it sees, in which clause of which rule, what is known."""

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
    """Something was reported, so that what holds it has no type either."""


class Lowering(Protocol):
    """From a syntax expression to a typed one; `want` is the type of what it is compared with."""

    def __call__(self, node: nodes.Expr, place: Place, want: Type | None = None) -> rules.Expr: ...


@dataclass(frozen=True)
class Place:
    """All that the meaning of an expression depends on besides itself."""

    scope: Scope
    findings: Findings
    lowering: Lowering
    clause: Clause
    variables: Mapping[str, Type]
    window: rules.Window | None = None
    across: bool = False
    facts: frozenset[rules.Expr] = frozenset()
    """Optional values that are present here."""
    folded: bool = False
    """Inside the argument of a fold over the group."""
    trusted: bool = False
    """Something that might guard optional values could not be read: they are let pass."""
    unknown: frozenset[str] = frozenset()
    """Variables of which the collection is wrong: what uses them is refused without a word."""

    def lower(self, node: nodes.Expr, want: Type | None = None) -> rules.Expr:
        """Type an expression here. Raises Refused, after it was reported."""
        return self.lowering(node, self, want)

    def lower_all(
        self, given: tuple[nodes.Expr, ...], want: Type | None = None
    ) -> tuple[rules.Expr, ...]:
        """Type several, and report what is wrong with any before refusing."""
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

    def knowing(self, facts: frozenset[rules.Expr]) -> Place:
        """The same place, where more values are known to be present."""
        return replace(self, facts=self.facts | facts)

    def trusting(self, variable: str | None = None) -> Place:
        """The same place after an error, which is not to bring others with it."""
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
        """Report and give up on what stands there."""
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
        """Report and go on."""
        span = at.span if isinstance(at, nodes.Node) else at
        self.findings.add(code, message, (self.scope.source, span), hint=hint, related=related)

    def there(self, value: rules.Expr) -> Type:
        """The type of a value that is used, which has to be known to be present."""
        absent = isinstance(value.type, Optional) and not self.trusted
        if absent and not is_known(value, self.facts):
            text = self.scope.source.slice(value.span)
            # An inlined let stands in another text: its name is what is shown.
            shown = f"`{text}`" if text and "\n" not in text else "this"
            self.refuse(
                "TS0132",
                f"{shown} may be absent",
                value.span,
                f"guard it: `present({text})` in `when`, or before it with `and` or `implies`",
            )
        return plain(value.type)
