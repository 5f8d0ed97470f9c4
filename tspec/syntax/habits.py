"""Words of other languages, and the text to write instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lark import Token

DECLARATIONS = {
    "import": "write `use std.torch`",
    "from": "write `use std.torch`",
    "include": "write `use std.torch`",
    "const": "write `let`",
    "var": "write `let`",
    "def": "there are no functions; an `event` names one of the program",
    "fn": "there are no functions; an `event` names one of the program",
    "class": "write `entity`",
    "type": "write `entity`",
    "rule": "write `invariant`",
    "property": "write `invariant`",
    "assert": "write an `invariant` with `expect`",
    "/": "comments begin with `//`, on each line",
}
"""By the first word of the declaration."""

SIGNS = {
    "'": 'texts stand between double quotes: `"..."`',
    "“": 'texts stand between straight double quotes: `"..."`',
    "”": 'texts stand between straight double quotes: `"..."`',
    "#": "comments begin with `//`",
    ";": "nothing ends with a semicolon",
    "&": "write `and`",
    "!": "write `not`",
    "%": "`divisible(a, by: b)` asks for a remainder of zero",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "write `!=`",
    "\N{REPLACEMENT CHARACTER}": "files are written in UTF-8",
    "\ufeff": "save the file without a byte order mark",
}
"""By a sign that the language does not have."""


def hint(before: Sequence[Token], token: Token, choices: Sequence[str]) -> str | None:
    """The text to write instead of a token. `choices`: the fixed words and signs that would fit."""
    previous = before[-1] if before else None
    return next((says for fits, says in _HINTS if fits(previous, token, choices)), None)


_Fits = Callable[[Token | None, Token, Sequence[str]], bool]

_HINTS: tuple[tuple[_Fits, str], ...] = (
    (lambda p, t, c: t == ":" and "{" in c, "a block stands between `{` and `}`"),
    (lambda p, t, c: t == ":" and "expect" in c, "no colon and no comma ends a clause"),
    (lambda p, t, c: t == "," and "expect" in c, "no colon and no comma ends a clause"),
    (lambda p, t, c: t == ":" and "warn" in c, "the action follows without a colon"),
    (lambda p, t, c: t == "then" and "," in c, "a comma stands before `then`"),
    (
        lambda p, t, c: t.type == "QUANTITY" and p == "after",
        "write `after 5 consecutive steps` or `after 5 of 20 steps`",
    ),
    (
        lambda p, t, c: t.type == "QUANTITY" and p == "each",
        "write `each step every 10 steps`",
    ),
    (
        lambda p, t, c: t in ("every", "once") and "each" in c,
        "it follows a window on its line: `each step every 10 steps`",
    ),
    (
        lambda p, t, c: t == "-" and p is not None and p.type == "NAME" and "{" in c,
        "names are made of letters, digits and `_`",
    ),
    (
        lambda p, t, c: t.type == "STRING" and "{" not in c and p == "invariant",
        "names are made of letters, digits and `_`",
    ),
    (lambda p, t, c: p == "==" and t == "=", "write `==`"),
    (lambda p, t, c: p == "*" and t == "*", "there is no power; multiply"),
    (
        lambda p, t, c: t == "*" and "padded" in c,
        "a dimension made of several sizes stands in parentheses: `(3, hidden)`",
    ),
    (lambda p, t, c: t == ":" and p is not None and "=" in c, "write `=`"),
    (lambda p, t, c: c == ["call"], "an event names what is called: `call torch.save`"),
)
