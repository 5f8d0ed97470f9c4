"""Versions of modules: what they may look like, and whether a used module is as new as is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tspec.diagnostics import Related
from tspec.resolve.files import Unit
from tspec.resolve.findings import Findings
from tspec.source import Span
from tspec.syntax import nodes

_VERSION = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){0,2}")


def check_versions(units: Sequence[Unit], findings: Findings) -> dict[str, str]:
    """The versions of the modules that say one; what is wrong with one, or too old, is reported."""
    found: dict[str, str] = {}
    by_name = {unit.name: unit for unit in units if unit.name}
    for unit in units:
        said = unit.file.module.version if unit.file.module else None
        if said is not None and _is_version(said, unit, findings):
            found[unit.name] = said.value
        for use in unit.file.uses:
            used = by_name.get(use.module.text)
            wanted = use.version
            if wanted is None or used is None or not _is_version(wanted, unit, findings):
                continue
            _check_enough(unit, wanted, used, findings)
    return found


def numbers(version: str) -> tuple[int, int, int]:
    """`1.2` as (1, 2, 0)."""
    parts = [*map(int, version.split(".")), 0, 0]
    return parts[0], parts[1], parts[2]


def _is_version(node: nodes.String, unit: Unit, findings: Findings) -> bool:
    if _VERSION.fullmatch(node.value):
        return True
    hint = 'write one to three numbers with points between them, such as "1.2"'
    message = f"`{node.value}` is no version"
    findings.add("TS0198", message, (unit.source, node.span), hint=hint)
    return False


def _check_enough(unit: Unit, wanted: nodes.String, used: Unit, findings: Findings) -> None:
    """A module is new enough if it is no older, and its first number is the one asked for."""
    module = used.file.module
    assert module is not None
    place = (unit.source, wanted.span)
    if module.version is None:
        there = (Related(module.span, "here", used.source),)
        message = f"`{used.name}` says no version"
        findings.add("TS0199", message, place, related=there)
        return
    if not _VERSION.fullmatch(module.version.value):
        return
    has, needs = numbers(module.version.value), numbers(wanted.value)
    if has[0] == needs[0] and has >= needs:
        return
    if has < needs:
        why = "is older"
    else:
        why = "may mean other things by the same names, as its first number says"
    message = f"`{used.name}` is {module.version.value}, which {why}"
    span: Span = module.version.span
    there = (Related(span, "its version", used.source),)
    findings.add("TS0199", message, place, related=there)
