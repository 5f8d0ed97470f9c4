"""Versions of modules: their form, and whether a used module is new enough.

A module that ships with tspec has tspec's version unless its `module` line has one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tspec import __version__
from tspec.diagnostics import Related
from tspec.resolve.findings import Findings
from tspec.resolve.modules.files import Unit
from tspec.resources import is_shipped
from tspec.syntax import nodes

_VERSION = re.compile(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){0,2}")


def check_versions(units: Sequence[Unit], findings: Findings) -> dict[str, str]:
    """The versions of the modules that have one. Malformed and too old versions are reported."""
    by_name = {unit.name: unit for unit in units if unit.name}
    found = {name: version for name, unit in by_name.items() if (version := version_of(unit))}
    for unit in units:
        said = unit.file.module.version if unit.file.module else None
        if said is not None:
            _check_form(said, unit, findings)
        for use in unit.file.uses:
            used = by_name.get(use.module.text)
            wanted = use.version
            if wanted is not None and used is not None and _check_form(wanted, unit, findings):
                _check_enough(unit, wanted, used, findings)
    return found


def version_of(unit: Unit) -> str | None:
    """The version of a module, if it has a valid one."""
    said = unit.file.module.version if unit.file.module else None
    if said is not None:
        return said.value if _VERSION.fullmatch(said.value) else None
    return __version__ if is_shipped(Path(unit.source.path)) else None


def numbers(version: str) -> tuple[int, int, int]:
    """`1.2` as (1, 2, 0)."""
    parts = [*map(int, version.split(".")), 0, 0]
    return parts[0], parts[1], parts[2]


def _check_form(node: nodes.String, unit: Unit, findings: Findings) -> bool:
    if _VERSION.fullmatch(node.value):
        return True
    hint = 'write one to three numbers with points between them, such as "1.2"'
    message = f"`{node.value}` is no version"
    findings.add("TS0198", message, (unit.source, node.span), hint=hint)
    return False


def _check_enough(unit: Unit, wanted: nodes.String, used: Unit, findings: Findings) -> None:
    """Report a used module that is older than asked for, or whose major version differs."""
    module = used.file.module
    assert module is not None
    place = (unit.source, wanted.span)
    has = version_of(used)
    if has is None and module.version is None:
        there = (Related(module.span, "here", used.source),)
        findings.add("TS0199", f"`{used.name}` says no version", place, related=there)
    if has is None or fits(has, wanted.value):
        return
    if numbers(has) < numbers(wanted.value):
        why = "is older"
    else:
        why = "may mean other things by the same names, as its first number says"
    there = (Related((module.version or module).span, "its version", used.source),)
    findings.add("TS0199", f"`{used.name}` is {has}, which {why}", place, related=there)


def fits(version: str, wanted: str) -> bool:
    """True if a version is the one asked for, or later with the same major version."""
    has, needs = numbers(version), numbers(wanted)
    return has[0] == needs[0] and has >= needs
