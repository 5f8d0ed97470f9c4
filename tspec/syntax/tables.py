"""The parser's tables: built from the grammar ahead of time, and loaded at every start.

Building takes half a second, loading a tenth of that. After a change of the grammar,
`python -m tspec.syntax.tables` writes them anew; a test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.grammar import Rule
from lark.lexer import TerminalDef

from tspec.resources import shipped

PATH = Path(__file__).with_name("tables.json")


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
        start="item",
        maybe_placeholders=True,
        propagate_positions=True,
        postlex=_BesideTheGrammar(),
    )


def build() -> str:
    """The tables of the shipped grammar as JSON, the same bytes every time."""
    grammar = (shipped("grammars") / "tspec.lark").read_text(encoding="utf-8")
    data, memo = from_grammar(grammar).memo_serialize([TerminalDef, Rule])
    del data["options"]["postlex"]
    data["parser"]["parser"] = _numbered(data["parser"]["parser"])
    return json.dumps({"data": data, "memo": memo}, sort_keys=True, separators=(",", ":")) + "\n"


@cache
def load() -> Lark:
    """The parser, from its tables."""
    text = json.loads(PATH.read_text(encoding="utf-8"))
    memo = {int(key): value for key, value in text["memo"].items()}
    table = text["data"]["parser"]["parser"]
    table["tokens"] = {int(key): name for key, name in table["tokens"].items()}
    table["states"] = {
        int(state): {int(token): action for token, action in row.items()}
        for state, row in table["states"].items()
    }
    parser: Lark = Lark._load_from_dict(  # type: ignore[no-untyped-call]
        text["data"], memo, postlex=_BesideTheGrammar()
    )
    return parser


def _numbered(table: dict[str, Any]) -> dict[str, Any]:
    """A parse table with tokens and states numbered by name and by distance from the start.

    Lark numbers them in the order of sets, which differs from process to process.
    """
    names: dict[int, str] = table["tokens"]
    shift = 0  # lark's code for an action that goes to a state
    rows = {
        state: sorted((names[token], action) for token, action in row.items())
        for state, row in table["states"].items()
    }
    reached = {state: None for _, state in sorted(table["start_states"].items())}
    queue = list(reached)
    for state in queue:
        for _, (kind, goal) in rows[state]:
            if kind == shift and goal not in reached:
                reached[goal] = None
                queue.append(goal)
    number = {state: index for index, state in enumerate(reached)}
    token_number = {name: index for index, name in enumerate(sorted(names.values()))}
    return {
        **table,
        "tokens": {index: name for name, index in token_number.items()},
        "states": {
            number[state]: {
                token_number[name]: (kind, number[goal] if kind == shift else goal)
                for name, (kind, goal) in rows[state]
            }
            for state in reached
        },
        "start_states": {name: number[state] for name, state in table["start_states"].items()},
        "end_states": {name: number[state] for name, state in table["end_states"].items()},
    }


if __name__ == "__main__":
    PATH.write_text(build(), encoding="utf-8")
