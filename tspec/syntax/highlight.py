"""A lexer for Pygments, so that documentation and code hosts show specs in colour.

Registered as `tspec` by the entry point `pygments.lexers`. Keywords may be names elsewhere (`step`,
`run`): a word is shown as a keyword where it is not a field, a label or called.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

from tspec.builtin.actions import ACTIONS

DECLARATIONS = (
    *("edition", "module", "use", "let", "reject", "context", "group", "entity", "event"),
    *("extend", "draft", "invariant", "mesh", "dims", "layout", "equivalence", "replay", "test"),
)
"""The first words of an item, each followed by its name."""

CLAUSES = (
    *("across", "after", "as", "at", "because", "before", "by", "call", "candidate", "checks"),
    *("chunk", "compare", "consecutive", "cover", "during", "each", "else", "equal", "events"),
    *("every", "expect", "fix", "flat", "for", "from", "inferred", "inputs", "localize", "of"),
    *("on", "once", "only", "others", "padded", "partial", "passes", "rank", "ranks", "reference"),
    *(
        "regroup",
        "replicated",
        "require",
        "resume",
        "rewriting",
        "run",
        "save",
        "stage",
        "steps",
        "store",
        "sweep",
        "then",
    ),
    *("tied", "to", "trace", "version", "violates", "when", "with", "within"),
)
"""Words of clauses."""

VALUES = (
    *("off", *sorted(ACTIONS)),
    *("epoch", "microbatch", "step"),
    *("all", "pairs", "triples"),
    *("buffer", "grad", "input", "input_grad", "output", "output_grad", "param"),
    "state",
)
"""Words that stand for one of a few: actions, spans, coverage, kinds of tensors."""

OPERATORS = ("and", "contains", "implies", "in", "is", "not", "or")
CONSTANTS = ("false", "true")

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_NOT_A_NAME = r"\b(?![(\[]|\s*[.:])"
"""The end of a keyword. Characters that would make it a name must not follow."""


class TspecLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """Specs of training jobs."""

    name = "tspec"
    aliases: ClassVar[list[str]] = ["tspec"]
    filenames: ClassVar[list[str]] = ["*.tspec"]
    mimetypes: ClassVar[list[str]] = ["text/x-tspec"]
    url = ""

    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [
            (r"\s+", Whitespace),
            (r"///(?!/)[^\n]*", Comment.Special),
            (r"//[^\n]*", Comment.Single),
            (r'"', String, "string"),
            (
                r"([0-9]+(?:\.[0-9]+)?)([ \t]+)"
                r"((?:steps?|epochs?|microbatch(?:es)?|seconds?|minutes?|hours?)\b)",
                bygroups(Number, Whitespace, Keyword.Type),
            ),
            (r"[0-9]+(\.[0-9]+)?%", Number),
            (r"[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+", Number.Float),
            (r"[0-9]+", Number.Integer),
            (
                r"(edition)([ \t]+)([0-9]+)",
                bygroups(Keyword.Namespace, Whitespace, Number.Integer),
            ),
            (
                rf"(module|use)([ \t]+)({_NAME}(?:\.{_NAME})*)",
                bygroups(Keyword.Namespace, Whitespace, Name.Namespace),
            ),
            (
                rf"(invariant|entity|event|group|mesh|dims|layout|equivalence|replay|let|reject)"
                rf"([ \t]+)({_NAME}(?:\.{_NAME})*)(?=\s*[{{=]|[ \t]+(?:on|because)\b|\s*$)",
                bygroups(Keyword.Declaration, Whitespace, Name.Class),
            ),
            (rf"(\.)(\s*)({_NAME})", bygroups(Punctuation, Whitespace, Name.Attribute)),
            (words(OPERATORS, suffix=r"\b"), Operator.Word),
            (words(CONSTANTS, suffix=r"\b"), Keyword.Constant),
            (words(DECLARATIONS, suffix=_NOT_A_NAME), Keyword.Declaration),
            (words(CLAUSES, suffix=_NOT_A_NAME), Keyword),
            (words(VALUES, suffix=_NOT_A_NAME), Keyword.Pseudo),
            (rf"{_NAME}(?=\()", Name.Function),
            (rf"{_NAME}(?=:)", Name.Label),
            (_NAME, Name),
            (r"==|!=|<=|>=|\.\.|[<>=+\-*/|?]", Operator),
            (r"[{}()\[\],:.]", Punctuation),
        ],
        "string": [
            (r"\\u\{[0-9A-Fa-f]+\}|\\.", String.Escape),
            (r'[^"\\\n]+', String),
            (r'"', String, "#pop"),
            (r"\n", Text, "#pop"),
        ],
    }
