"""The message for a text that does not fit the grammar: the likeliest cause, in plain words.

Each rule below looks at the place and returns a message or None. The first message is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from lark import Token

from tspec.diagnostics import Diagnostic, Related, did_you_mean
from tspec.source import Source, Span
from tspec.syntax import habits
from tspec.syntax.clauses import KEYWORDS
from tspec.syntax.expected import describe, texts
from tspec.syntax.habits import CONDITION_WORDS, DECLARATIONS, SIGNS
from tspec.syntax.tokens import CLOSING, OPENING, span_of
from tspec.syntax.units import PLURALS, SINGULARS

ITEM_WORDS = (
    *("edition", "module", "use", "let", "reject", "context", "group", "entity", "event"),
    *("extend", "draft", "invariant", "mesh", "dims", "layout", "equivalence", "replay", "test"),
)
"""The words that begin items."""

RESERVED = ("and", "or", "not", "implies", "in", "is", "true", "false", "contains")
"""The words that name nothing."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A place where the text does not fit.

    `before`: the tokens of the item up to there. `token`: what stands there; the first token
    that does not belong to the item any more, or None at the end of the file, if `ended`.
    `following`: the token after it.
    `expected`: the terminals that would fit.
    """

    source: Source
    before: tuple[Token, ...]
    token: Token | None
    expected: frozenset[str]
    ended: bool = False
    following: Token | None = None

    @property
    def span(self) -> Span:
        """The word; at the end of an item the place after its last one."""
        if self.token is not None and not self.ended:
            return span_of(self.token)
        end = span_of(self.before[-1]).end if self.before else 0
        return Span(end, end)

    @property
    def text(self) -> str:
        return "" if self.token is None else str(self.token)

    @property
    def previous(self) -> Token | None:
        return self.before[-1] if self.before else None

    def begins_line(self) -> bool:
        """True if the word is the first on its line."""
        begin = self.source.text.rfind("\n", 0, self.span.start) + 1
        return not self.source.text[begin : self.span.start].strip()

    def brackets(self) -> list[Token]:
        """The brackets that are open at the place, the innermost last."""
        stack: list[Token] = []
        for token in self.before:
            if token in OPENING:
                stack.append(token)
            elif token in CLOSING and stack:
                stack.pop()
        return stack

    def block(self) -> str:
        """The keyword of the declaration around the place, or an empty text."""
        words = [str(token) for token in self.before[:2]]
        return next((word for word in words if word not in ("draft", "extend")), "")

    def error(
        self, code: str, message: str, hint: str | None = None, related: tuple[Related, ...] = ()
    ) -> Diagnostic:
        return Diagnostic(code, message, self.span, self.source, related, hint)


def explain(place: Misfit) -> Diagnostic:
    """The error of a place that does not fit."""
    return next(found for rule in RULES if (found := rule(place)) is not None)


def _unknown_character(place: Misfit) -> Diagnostic | None:
    if place.token is None or place.ended or place.token.type != "UNKNOWN":
        return None
    shown = place.text if place.text.isprintable() else f"U+{ord(place.text):04X}"
    message = f"`{shown}` is no sign of the language"
    return place.error("TS0002", message, SIGNS.get(place.text))


def _open_text(place: Misfit) -> Diagnostic | None:
    if place.token is None or place.ended or place.token.type != "OPEN_STRING":
        return None
    return place.error("TS0003", 'this text has no closing `"` on its line')


def _number(place: Misfit) -> Diagnostic | None:
    """A number with a letter or a point where it cannot have one."""
    if place.token is None:
        return None
    around = [*place.before[-2:], *([] if place.ended else [place.token])]
    if place.text == "." and place.following is not None:
        around.append(place.following)
    touching = around[-1:]
    for token in reversed(around[:-1]):
        if span_of(token).end != span_of(touching[0]).start:
            break
        touching.insert(0, token)
    while touching and touching[0].type not in ("INT", "FLOAT") and touching[0] != ".":
        touching.pop(0)
    if len(touching) < 2 or not any(token.type in ("INT", "FLOAT") for token in touching):
        return None
    if not all(token == "." or token[0].isalnum() or token[0] == "_" for token in touching):
        return None
    span = span_of(touching[0]).to(span_of(touching[-1]))
    hint = "write digits on both sides of the point, and no letters: `1000000`, `0.5`, `1e-6`"
    message = f"`{place.source.slice(span)}` is no number"
    return Diagnostic("TS0019", message, span, place.source, hint=hint)


def _unit(place: Misfit) -> Diagnostic | None:
    previous, token = place.previous, place.token
    if place.ended or previous is None or token is None:
        return None
    unit: Token | None = None
    if token.type in ("INT", "FLOAT") and "QUANTITY" in place.expected:
        unit = place.following
        if unit is None or unit.type != "NAME" or unit.line != token.line:
            hint = f"write a number and its unit, such as `{place.text} steps`"
            return place.error("TS0013", f"`{place.text}` has no unit", hint)
    elif previous.type in ("INT", "FLOAT") and token.type == "NAME":
        unit = token if token.line == previous.line else None
    if unit is None or unit in CONDITION_WORDS:
        return None
    hint = did_you_mean(unit, SINGULARS) or f"the units are {', '.join(PLURALS.values())}"
    message = f"`{unit}` is no unit"
    return Diagnostic("TS0013", message, span_of(unit), place.source, hint=hint)


def _assignment(place: Misfit) -> Diagnostic | None:
    if place.text != "=" or "==" not in texts(place.expected):
        return None
    return place.error("TS0014", "`=` does not compare", "write `==`")


def _after_as_claim(place: Misfit) -> Diagnostic | None:
    if place.ended or place.text != "after" or "BEFORE" not in place.expected:
        return None
    hint = "write `B before A`: each `A` has a `B` before it"
    return place.error("TS0015", "`A after B` is no claim", hint)


def _unclosed(place: Misfit) -> Diagnostic | None:
    stack = place.brackets()
    if not stack:
        return None
    opening, wanted = stack[-1], OPENING[str(stack[-1])]
    related = (Related(span_of(opening), "opened here"),)
    if place.ended:
        begins = "the end of the file" if place.token is None else f"`{place.text}`"
        message = f"`{opening}` is not closed: `{wanted}` is missing before {begins}"
        return place.error("TS0004", message, None, related)
    if place.text in CLOSING and place.text != wanted:
        return place.error("TS0004", f"`{place.text}` does not close `{opening}`", None, related)
    return None


def _closed_twice(place: Misfit) -> Diagnostic | None:
    if place.ended or place.text not in CLOSING or place.brackets():
        return None
    return place.error("TS0023", f"`{place.text}` closes nothing", "delete it")


def _unknown_item(place: Misfit) -> Diagnostic | None:
    if place.before or place.token is None:
        return None
    hint = (
        DECLARATIONS.get(place.text)
        or did_you_mean(place.text, ITEM_WORDS)
        or (
            "a declaration begins with `let`, `entity`, `event`, `invariant` or another of its kind"
        )
    )
    return place.error("TS0005", f"`{place.text}` begins no declaration", hint)


def _misplaced_clause(place: Misfit) -> Diagnostic | None:
    """A clause below the ones that it has to stand above; only where the grammar orders them."""
    words = KEYWORDS.get(place.block(), ())
    if place.ended or place.text not in words or len(place.brackets()) != 1:
        return None
    if not place.begins_line() or "NAME" in place.expected:
        return None
    lower = [t for t in place.before if t in words and words.index(t) >= words.index(place.text)]
    if not lower:
        return None
    same = [token for token in lower if token == place.text]
    if same:
        related = (Related(span_of(same[0]), "here"),)
        message = f"this {place.block()} already has `{place.text}`"
        return place.error("TS0008", message, None, related)
    related = (Related(span_of(lower[0]), f"move it above `{lower[0]}`"),)
    message = f"`{place.text}` stands above `{lower[0]}`, so that every {place.block()} reads in one order"
    return place.error("TS0007", message, f"the order is {', '.join(words)}", related)


def _unknown_clause(place: Misfit) -> Diagnostic | None:
    words = KEYWORDS.get(place.block(), ())
    if place.ended or place.token is None or len(place.brackets()) != 1 or not words:
        return None
    if place.token.type != "NAME" or "NAME" in place.expected:
        return None
    choices = texts(place.expected)
    if not set(words) & set(choices) or ("+" in choices and not place.begins_line()):
        return None
    hint = did_you_mean(place.text, words) or f"its clauses are {', '.join(words)}"
    block = place.block()
    article = "an" if block[0] in "aeiou" else "a"
    return place.error("TS0006", f"`{place.text}` begins no clause of {article} {block}", hint)


def _missing_value(place: Misfit) -> Diagnostic | None:
    """The keyword of the next clause, read as a name because a value is missing before it."""
    words = KEYWORDS.get(place.block(), ())
    previous = place.previous
    if previous is None or str(previous) not in words or len(place.before) < 2:
        return None
    if len(place.brackets()) != 1 or previous.line == place.before[-2].line:
        return None
    if "+" not in texts(place.expected):
        return None
    end = span_of(place.before[-2]).end
    message = f"expected an expression before `{previous}`"
    return Diagnostic("TS0001", message, Span(end, end), place.source)


def _combined_claim(place: Misfit) -> Diagnostic | None:
    """`and` beside a claim that is no expression."""
    if place.ended or place.block() != "invariant":
        return None
    previous = str(place.previous)
    joins = place.text in ("and", "or", "implies") and "+" not in texts(place.expected)
    inside = place.text == "contains" and previous in ("not", "and", "or", "implies", "(")
    if not inside and not (joins and "else" in texts(place.expected)):
        return None
    return place.error(
        "TS0020",
        "`contains`, `before` and `only during` are not joined with `and`, `or` or `not`",
        "write a rule for each claim; `count(calls(E)) == 0` says that there is no call of E",
    )


def _reserved(place: Misfit) -> Diagnostic | None:
    if place.ended or place.text not in RESERVED or "NAME" not in place.expected:
        return None
    hint = f"these words name nothing: {', '.join(RESERVED)}"
    return place.error("TS0018", f"`{place.text}` is an operator and cannot be a name", hint)


def _one_of_few(place: Misfit) -> Diagnostic | None:
    kinds = {
        "ROLLBACK": "action",
        "MICROBATCH": "window",
        "TRIPLES": "coverage",
    }
    if place.ended or place.token is None or "NAME" in place.expected:
        return None
    if not place.text[0].isalpha():
        return None
    kind = next((name for terminal, name in kinds.items() if terminal in place.expected), None)
    if kind is None:
        return None
    choices = texts(place.expected)
    hint = did_you_mean(place.text, choices) or f"choose one of {', '.join(choices)}"
    return place.error("TS0021", f"`{place.text}` is no {kind}", hint)


def _other(place: Misfit) -> Diagnostic:
    if place.ended:
        found = "the file ends here" if place.token is None else "the declaration ends here"
    else:
        found = f"found `{place.text}`"
    hint = None
    if place.token is not None and not place.ended:
        choices = texts(place.expected)
        hint = _in_a_fold(place) or habits.hint(place.before, place.token, choices)
        if hint is None and place.token.type == "NAME":
            hint = did_you_mean(place.text, choices)
    return place.error("TS0001", f"expected {describe(place.expected)}, {found}", hint)


def _in_a_fold(place: Misfit) -> str | None:
    """How to write `mean(x over 20 steps)`, and `max(x for p in parameters)`."""
    stack = place.brackets()
    if not stack or stack[-1] != "(" or place.previous is None:
        return None
    if place.text == "for":
        loop = _LOOP.match(place.source.text, place.span.start)
        clause = loop[0] if loop else "for p in parameters"
        return f"write the clause `{clause}`, and in `expect` the condition on one of them"
    opening = next(n for n, each in enumerate(place.before) if each is stack[-1])
    if place.text != "over" or opening == 0:
        return None
    folded = span_of(place.before[opening - 1]).to(span_of(place.previous))
    after = place.following
    time = after if after is not None and after.type == "QUANTITY" else "20 steps"
    return f"write `{place.source.slice(folded)}, over: {time})`"


_LOOP = re.compile(r"for\s+\w+\s+in\s+[\w.]+")

RULES: tuple[Callable[[Misfit], Diagnostic | None], ...] = (
    _unknown_character,
    _open_text,
    _number,
    _unit,
    _assignment,
    _after_as_claim,
    _unclosed,
    _closed_twice,
    _unknown_item,
    _misplaced_clause,
    _missing_value,
    _unknown_clause,
    _combined_claim,
    _reserved,
    _one_of_few,
    _other,
)
