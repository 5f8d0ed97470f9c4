"""Resolves many invariants at once, and separates those with errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tspec.infer.heads import header
from tspec.resolve.program.rules import Rule

_FILE = "candidates.tspec"


class InferenceError(Exception):
    """Drafts cannot be inferred from the arguments; the text is for the user."""


def resolve_each(
    blocks: Mapping[str, str], uses: Sequence[str]
) -> tuple[tuple[Rule, ...], dict[str, str]]:
    """The rules of invariants by name, and the first error of each that does not resolve. Raises
    InferenceError if the error lies in none of them.
    """
    from tspec.resolve import load_text

    top = "\n\n".join(header("candidates", uses))
    left = dict(blocks)
    problems: dict[str, str] = {}
    while left:
        loaded = load_text("\n".join([top, *left.values(), ""]), name=_FILE)
        if loaded.program is not None:
            return loaded.program.rules, problems
        owners = _owners(left, len(top.splitlines()))
        found: dict[str, str] = {}
        for each in loaded.diagnostics:
            line = each.source.position(each.span.start).line
            if each.severity == "error" and each.source.path == _FILE and line in owners:
                found.setdefault(owners[line], each.message)
        if not found:
            raise InferenceError(
                f"no candidate resolves with {', '.join(uses)}: {loaded.diagnostics[0].message}"
            )
        problems |= found
        left = {name: text for name, text in left.items() if name not in found}
    return (), problems


def _owners(blocks: Mapping[str, str], before: int) -> dict[int, str]:
    """Line number -> the name of its block. `before` lines stand above the first block."""
    owners: dict[int, str] = {}
    for name, text in blocks.items():
        for _ in text.splitlines():
            owners[before + len(owners) + 1] = name
    return owners
