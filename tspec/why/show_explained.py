"""An explained rule as text for a terminal, and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from tspec.builtin.actions import DEFAULT
from tspec.printable import visible
from tspec.resolve.program.documentation import paragraphs
from tspec.resolve.program.rules import Rule
from tspec.why.explain import Explained
from tspec.why.place import place

WIDTH = 80


def as_text(found: Explained, version: str = "") -> str:
    """Heading, documentation, words, costs, code."""
    rule = found.rule
    lines = [
        f"{rule.qualified}{' (draft)' if rule.draft else ''}",
        f"  {place(rule.source, rule.span)}",
    ]
    packs = f"; in {', '.join(found.packs)}" if found.packs else ""
    if rule.module:
        head = f"module {rule.module}{f', version {version}' if version else ''}{packs}"
        lines += _wrap(head, "  ")
    lines += _wrap(f"else {_action(rule)}", "  ")
    if rule.doc:
        lines += ["", *_documentation(rule.doc)]
    lines += ["", "In words", *_wrap(" ".join(found.words), "  ")]
    lines += ["", "Reads", *_reads(found)]
    lines += ["", "Costs", *_costs(found)]
    lines += ["", "Hooks in", *(f"  {each}" for each in found.hooks)]
    if found.no_code:
        lines += ["", "Code", *_wrap(found.no_code, "  ")]
    elif found.code:
        lines += ["", "Code", *(f"  {line}".rstrip() for line in found.code.splitlines())]
    return "\n".join(lines)


def _action(rule: Rule) -> str:
    if rule.draft:
        return "warn, since it is a draft"
    names = [each.action for each in rule.responses] or [DEFAULT]
    said = ", then ".join(names)
    return f"{said}{f', as {rule.set_by} says' if rule.set_by else ''}"


def _reads(found: Explained) -> Iterator[str]:
    if not found.reads:
        yield "  nothing but whether calls were made"
    for each in found.reads:
        size = f" ({bytes_said(each.bytes)})" if each.bytes else ""
        yield from _wrap(f"{each.said}{size}", "  ")


def _costs(found: Explained) -> Iterator[str]:
    if found.passes_of_a_look:
        yield from _wrap(
            f"{found.passes_of_a_look:g} {_plural(found.passes_of_a_look, 'read')} of the "
            f"parameters' memory in a step in which it is looked at, {found.passes:.3g} a step "
            "on average over a long run",
            "  ",
        )
    else:
        yield "  no read of the parameters' memory"
    if found.rule.across:
        yield f"  one collective whenever it is looked at, {found.collectives:.3g} a step on average"
    else:
        yield "  no collective"
    yield from _wrap(f"keeps {'; '.join(found.state) or 'nothing'}", "  ")


def _plural(number: float, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"


def bytes_said(number: int) -> str:
    """`12.3 kB`."""
    size = float(number)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _documentation(doc: str) -> Iterable[str]:
    return [line for part in paragraphs(doc) for line in ["", *_wrap(part, "")]][1:]


def _wrap(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        visible(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def as_plain(found: Explained, version: str = "") -> dict[str, Any]:
    """The explanation as JSON holds it."""
    rule = found.rule
    return {
        "rule": rule.qualified,
        "file": rule.source.path,
        "line": rule.source.position(rule.span.start).line,
        "module": rule.module,
        "version": version,
        "packs": list(found.packs),
        "draft": rule.draft,
        "actions": [each.action for each in rule.responses],
        "doc": rule.doc,
        "words": list(found.words),
        "reads": [{"what": each.said, "bytes": each.bytes} for each in found.reads],
        "passes": found.passes,
        "passes_of_a_look": found.passes_of_a_look,
        "collectives": found.collectives,
        "state": list(found.state),
        "hooks": list(found.hooks),
        "code": found.code,
        "no_code": found.no_code,
    }
