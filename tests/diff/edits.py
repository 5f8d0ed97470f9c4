"""Random edits of random rules: what a person does to a rule between two versions."""

from __future__ import annotations

import re
from random import Random

NUMBER = re.compile(
    r"(?<![\w.\"'])\d+(?:\.\d+)?(?![\w.%]| steps| epochs| microbatches| step| epoch)"
)
OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
OPERATOR = re.compile(r" (<=|>=|==|!=|<|>) ")


def edited(dice: Random, body: str, pool: tuple[str, ...]) -> str:
    """The body of an invariant with one or two edits; some change nothing that matters."""
    for _ in range(dice.choice([1, 1, 2])):
        body = dice.choice(EDITS)(dice, body, pool)
    return body


def _number(dice: Random, body: str, pool: tuple[str, ...]) -> str:
    found = list(NUMBER.finditer(body))
    if not found:
        return body
    one = dice.choice(found)
    new = dice.choice(["0", "1", "2", "3", "0.5", "1.0"])
    if "[" in body[max(0, one.start() - 1) : one.start()] or "." not in one[0]:
        new = dice.choice(["0", "1", "2", "3"])
    return body[: one.start()] + new + body[one.end() :]


def _operator(dice: Random, body: str, pool: tuple[str, ...]) -> str:
    found = list(OPERATOR.finditer(body))
    if not found:
        return body
    one = dice.choice(found)
    return f"{body[: one.start()]} {OPERATORS[one[1]]} {body[one.end() :]}"


def _more(dice: Random, body: str, pool: tuple[str, ...]) -> str:
    """Another condition in `when` or `expect`."""
    word = dice.choice(["when ", "expect "])
    joined = dice.choice(["and", "and", "or"])
    head, found, rest = body.partition(word)
    if not found or ("contains" in rest or " before " in rest or " only during " in rest):
        return body
    line, newline, after = rest.partition("\n")
    return f"{head}{word}({dice.choice(pool)}) {joined} ({line}){newline}{after}"


def _without_when(dice: Random, body: str, pool: tuple[str, ...]) -> str:
    lines = body.split("\n")
    return "\n".join(line for line in lines if not line.strip().startswith("when"))


def _thinned(dice: Random, body: str, pool: tuple[str, ...]) -> str:
    for window in ("each step", "before update", "after update", "during update"):
        line = next((each for each in body.split("\n") if each.strip() == window), None)
        if line is not None:
            return body.replace(
                line, line + dice.choice([" every 2 steps", " every 3 steps", " once"])
            )
    return re.sub(r" (every \d steps|once)$", "", body, flags=re.MULTILINE)


def _filtered(dice: Random, body: str, pool: tuple[str, ...]) -> str:
    if "parameters(requires_grad: true)" in body:
        return body.replace("for p in parameters(requires_grad: true)", "for p in parameters")
    return body.replace("for p in parameters\n", "for p in parameters(requires_grad: true)\n")


def _other_window(dice: Random, body: str, pool: tuple[str, ...]) -> str:
    new = dice.choice(["before update", "after update", "during update", "each epoch"])
    return re.sub(r"^  (before|after|during) update", f"  {new}", body, flags=re.MULTILINE)


def _denied(dice: Random, body: str, pool: tuple[str, ...]) -> str:
    """The same by other words: `not not x`, or sides swapped."""
    head, found, rest = body.partition("when ")
    if not found:
        return body
    line, newline, after = rest.partition("\n")
    return f"{head}when not (not ({line})){newline}{after}"


EDITS = (
    _number, _number, _number, _operator, _operator, _more, _more, _without_when, _thinned,
    _filtered, _other_window, _denied,
)  # fmt: skip
