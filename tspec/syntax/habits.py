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


CONDITION_WORDS = ("if", "unless", "when", "where")
"""Words that join a condition to a claim in other languages."""


def hint(before: Sequence[Token], token: Token, choices: Sequence[str]) -> str | None:
    """The text to write instead of a token. `choices`: the fixed words and signs that would fit."""
    previous = before[-1] if before else None
    says = next((says for fits, says in _HINTS if fits(previous, token, choices)), None)
    return says(token) if callable(says) else says


def _repeated(quantity: Token) -> str:
    """`after 5 steps` in one of the forms that the language has."""
    number, unit = quantity.split()
    if not (number.isdigit() and unit.startswith("step")):
        number = "5"
    return (
        f"write `after {number} consecutive steps` or `after {number} of {4 * int(number)} steps`"
    )


def _thinned(quantity: Token) -> str:
    """`each 10 steps` in the form that the language has."""
    unit = next((unit for unit in _SPANS if quantity.split()[1].startswith(unit)), "step")
    return f"write `each {unit} every {quantity}`"


_SPANS = ("microbatch", "epoch")
_Fits = Callable[[Token | None, Token, Sequence[str]], bool]
_Says = str | Callable[[Token], str]

_HINTS: tuple[tuple[_Fits, _Says], ...] = (
    (lambda p, t, c: t == ":" and "{" in c, "a block stands between `{` and `}`"),
    (lambda p, t, c: t == ":" and "expect" in c, "no colon and no comma ends a clause"),
    (lambda p, t, c: t == "," and "expect" in c, "no colon and no comma ends a clause"),
    (lambda p, t, c: t == ":" and "warn" in c, "the action follows without a colon"),
    (lambda p, t, c: t == "then" and "," in c, "a comma stands before `then`"),
    (
        lambda p, t, c: t.type == "QUANTITY" and p == "after",
        _repeated,
    ),
    (
        lambda p, t, c: t.type == "QUANTITY" and p == "each",
        _thinned,
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
    (
        lambda p, t, c: t in CONDITION_WORDS and "else" in c,
        "put the condition in `when`, above `expect`",
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
