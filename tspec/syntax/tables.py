"""The parser's tables: built from the grammar ahead of time, and loaded at every start.

Building takes half a second, loading a hundredth of one. After a change of the grammar,
`python -m tspec.syntax.tables` writes them anew; a test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.grammar import Rule, Terminal
from lark.lexer import TerminalDef
from lark.parsers.lalr_analysis import IntParseTable, Reduce, Shift

from tspec.resources import shipped

PATH = Path(__file__).with_name("tables.json")

START = "item"
"""The rule of the grammar with which parsing begins."""


class _BesideTheGrammar:
    """Tells Lark to keep terminals that no rule names, and to leave the stream as it is."""

    always_accept = ("COMMENT", "OPEN_STRING", "UNKNOWN")

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return stream


def from_grammar(text: str) -> Lark:
    """The parser of a grammar. Raises lark's GrammarError if it is not strictly LALR(1)."""
    return Lark(
        text,
        parser="lalr",
        lexer="basic",
        strict=True,
        start=START,
        maybe_placeholders=True,
        propagate_positions=True,
        postlex=_BesideTheGrammar(),
    )


def build() -> str:
    """The tables of the shipped grammar as JSON, the same bytes every time."""
    grammar = (shipped("grammars") / "tspec.lark").read_text(encoding="utf-8")
    data, memo = from_grammar(grammar).memo_serialize([TerminalDef, Rule])
    del data["options"]["postlex"]
    table, data["parser"]["parser"] = data["parser"]["parser"], _NO_TABLE
    rules = {rule["@"]: index for index, rule in enumerate(data["rules"])}
    tables = {"data": data, "memo": memo, "table": _packed(table, rules)}
    return json.dumps(tables, sort_keys=True, separators=(",", ":")) + "\n"


@cache
def load() -> Lark:
    """The parser, from its tables."""
    text = json.loads(PATH.read_text(encoding="utf-8"))
    memo = {int(key): value for key, value in text["memo"].items()}
    parser: Lark = Lark._load_from_dict(  # type: ignore[no-untyped-call]
        text["data"], memo, postlex=_BesideTheGrammar()
    )
    parser.parser.parser.parser.parse_table = _unpacked(text["table"], parser.rules)
    parser.parser.parser.parser.callbacks.update(dict.fromkeys(_units(parser.rules), itemgetter(0)))
    parser.lexer = parser._build_lexer()  # else `lex` builds one for each text
    return parser


def _units(rules: list[Rule]) -> Iterator[Rule]:
    """Rules that only pass on their single node, such as those from `expr` down to a number.

    A number passes through a dozen of them. Lark would look at the place of the same node each
    time, which took half of the time for a long list.
    """
    for rule in rules:
        if rule.options.expand1 and len(rule.expansion) == 1:
            (symbol,) = rule.expansion
            if not symbol.name.startswith("_") and not (
                isinstance(symbol, Terminal) and symbol.filter_out
            ):
                yield rule


# Lark writes every entry of the table separately: a megabyte that takes long to read. Most states
# share their shifts and their terminals for reductions; each such set is written once.

_NO_TABLE: dict[str, Any] = {"tokens": {}, "states": {}, "start_states": {}, "end_states": {}}


def _packed(table: dict[str, Any], rules: dict[int, int]) -> dict[str, Any]:
    """A table of Lark's with its states numbered by distance from the start.

    Lark numbers them in the order of sets, which differs from process to process.
    """
    names: dict[int, str] = table["tokens"]
    (start,) = table["start_states"].values()
    (end,) = table["end_states"].values()
    number = {start: 0}
    shifts: dict[str, int] = {}
    lookaheads: dict[tuple[str, ...], int] = {}
    states = []
    for state in (queue := [start]):
        row = sorted((names[token], *action) for token, action in table["states"][state].items())
        for _, kind, goal in row:
            if kind == _SHIFT and goal not in number:
                number[goal] = len(number)
                queue.append(goal)
        shift = {name: number[goal] for name, kind, goal in row if kind == _SHIFT}
        reduce: dict[int, list[str]] = {}
        for name, kind, rule in row:
            if kind != _SHIFT:
                reduce.setdefault(rules[rule["@"]], []).append(name)
        states.append(
            (
                shifts.setdefault(json.dumps(shift), len(shifts)),
                {
                    rule: lookaheads.setdefault(tuple(terminals), len(lookaheads))
                    for rule, terminals in reduce.items()
                },
            )
        )
    return {
        "shifts": [json.loads(row) for row in shifts],
        "lookaheads": list(lookaheads),
        "states": states,
        "end": number[end],
    }


_SHIFT = 0
"""Lark's code for an action that goes to a state; 1 is one that applies a rule."""


def _unpacked(table: dict[str, Any], rules: list[Rule]) -> IntParseTable:
    shifts = [{name: (Shift, goal) for name, goal in row.items()} for row in table["shifts"]]
    states: dict[int, dict[str, tuple[Any, Any]]] = {}
    for state, (shift, reduce) in enumerate(table["states"]):
        row = states[state] = {**shifts[shift]}
        for rule, lookahead in reduce.items():
            row.update(dict.fromkeys(table["lookaheads"][lookahead], (Reduce, rules[int(rule)])))
    return IntParseTable(states, {START: 0}, {START: table["end"]})  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    PATH.write_text(build(), encoding="utf-8")
