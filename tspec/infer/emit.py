"""Drafts as an ordinary file in canonical form, with names derived from each rule's content."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import chain, count

from tspec.infer.drafts import Draft
from tspec.infer.heads import EVERY, header, invariant, unsampled
from tspec.syntax.strings import quote

LONGEST_NAME = 72
WIDTH = 80
VERSION = 1
"""The version of the relations' definitions: `by: "change@1"`."""

_WHOSE = re.compile(r"\(\w+: \w+\)")
"""`(optimizer: o)`: the name says the subject already."""

_SIGNS = {
    "==": " is ",
    "!=": " is_not ",
    "<=": " at_most ",
    ">=": " at_least ",
    "<": " below ",
    ">": " above ",
}


def emit(drafts: Sequence[Draft], module: str, uses: Sequence[str], runs: Sequence[str]) -> str:
    """The text of a file of drafts; the same drafts give the same bytes."""
    from tspec.source import Source
    from tspec.syntax.format import format_text

    names = name_all(drafts)
    blocks = [block(names[draft.key], draft, runs) for draft in drafts]
    text = "\n\n".join([*header(module, uses), *blocks]) + "\n"
    return format_text(Source(f"{module}.tspec", text))


def block(name: str, draft: Draft, runs: Sequence[str]) -> str:
    """The text of one draft, not yet in canonical form."""
    claim = draft.claim
    says = textwrap.wrap(claim.breaks, WIDTH, initial_indent="/// ", subsequent_indent="/// ")
    rule = invariant(name, claim.head, claim.expect, draft.when, draft=True)
    text = "\n".join([*says, rule])
    inferred = [
        "  inferred {",
        f'    by: "{claim.relation}@{VERSION}"',
        "    from: " + ", ".join(map(quote, runs)),
        f"    held: {draft.held}",
        f"    broken: {draft.broken}",
        "  }",
    ]
    return text.removesuffix("}") + "  else warn\n" + "\n".join([*inferred, "}"])


def name_all(drafts: Sequence[Draft]) -> dict[tuple[object, ...], str]:
    """A name for each draft. Where drafts would share a name, the second in the order of their keys ends in `_2`."""
    plain = {draft.key: name_of(draft) for draft in drafts}
    names: dict[tuple[object, ...], str] = {}
    taken: set[str] = set()
    for key in sorted(plain, key=repr):
        numbered = (f"{plain[key]}_{number}" for number in count(2))
        names[key] = next(name for name in chain([plain[key]], numbered) if name not in taken)
        taken.add(names[key])
    return names


def name_of(draft: Draft) -> str:
    """A name from words of the claim, its window and its condition, as far as there is room."""
    if draft.claim.name is not None:
        return draft.claim.name
    head = draft.claim.head
    kinds = dict(subject.split(" in ", 1) for subject in head.subjects)
    parts = [_words(draft.claim.expect, kinds)]
    if head.across:
        parts.append(f"across_{head.across}")
    if head.window:
        parts.append(_words(_WHOSE.sub("", head.window.removesuffix(EVERY)), kinds))
    if condition := _condition(draft):
        parts.append("when_" + _words(condition, kinds))
    while len(parts) > 1 and len("_".join(parts)) > LONGEST_NAME:
        parts.pop()
    name = "_".join(parts)
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME].rpartition("_")[0]


def _condition(draft: Draft) -> str:
    """The draft's precondition without sampling, and without the guard that the value in the claim
    is present.
    """
    when = unsampled(draft.when) or ""
    guard = re.match(r"present\(([\w.]+)\)( and |$)", when)
    return when[guard.end() :] if guard and guard[1] in draft.claim.expect else when


def _words(text: str, kinds: dict[str, str]) -> str:
    text = re.sub(r"^not present\((.+?)\) or norm\(\1\) == 0$", r"no \1", text)
    text = re.sub(r"count\(calls\((.+?)\)\) == 1", r"one \1", text)
    for variable, collection in kinds.items():
        inner = re.match(r"calls\(([\w.]+)", collection)
        plural = collection.split("(")[0].rpartition(".")[2]
        noun = inner[1] if inner else re.sub(r"(?<=ch)es$|s$", "", plural)
        text = re.sub(rf"\b{variable}\b(?!\()", noun, text)
    for sign, word in _SIGNS.items():
        text = text.replace(sign, word)
    text = re.sub(r"torch\.nn\.", "", text)
    return re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_").lower()
