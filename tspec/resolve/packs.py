"""Packs: modules with rules, or files that bring such modules, with their versions and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tspec.resolve.findings import Findings
from tspec.resolve.modules.files import Reader, Unit
from tspec.resolve.modules.versions import version_of
from tspec.resolve.program.documentation import explanation, first_sentence
from tspec.resolve.settings import offered
from tspec.resources import shipped
from tspec.syntax import nodes


@dataclass(frozen=True, slots=True)
class Pack:
    """A module that brings rules. `about` is the first sentence of its documentation."""

    name: str
    version: str
    rules: int
    about: str
    path: Path


@dataclass(frozen=True, slots=True)
class PackRule:
    """A rule that a pack brings. `about` is the first sentence of its documentation."""

    name: str
    module: str
    about: str


def packs(paths: Sequence[Path] = ()) -> tuple[Pack, ...]:
    """The packs among some files and folders, by name; without paths, those that ship with tspec.

    Files with errors are left out: whoever uses them gets the errors.
    """
    reader = Reader(None, Findings())
    units = reader.read(list(paths) or [shipped("specs"), shipped("stdlib")])
    by_name = {unit.name: unit for unit in units if unit.name}
    asked = [unit for unit in by_name.values() if unit.given]
    found = [_pack(unit, len(offered(unit, by_name) or ())) for unit in asked]
    return tuple(sorted((pack for pack in found if pack.rules), key=lambda pack: pack.name))


def pack_named(name: str) -> tuple[Pack, tuple[PackRule, ...]] | None:
    """The shipped or own module that a name means, with its rules: `std.hygiene`, `specs/essentials`,
    or `essentials`. None without one; files with errors are none.
    """
    reader = Reader(None, Findings())
    known = set(reader.names())
    full = (name.replace("/", "."), f"specs.{name}", f"std.{name}")
    module = next((each for each in full if each in known), None)
    units = reader.read([Path(module)]) if module else ()
    unit = next((each for each in units if each.name == module), None)
    if unit is None:
        return None
    rules = tuple(
        PackRule(node.name.text, each.name, first_sentence(explanation(node.doc or "")))
        for each in units
        if each.asked
        for node in each.file.declarations
        if isinstance(node, nodes.Invariant)
    )
    return _pack(unit, len(rules)), rules


def _pack(unit: Unit, rules: int) -> Pack:
    module = unit.file.module
    about = first_sentence(module.doc or "").rstrip(".") if module else ""
    return Pack(unit.name, version_of(unit) or "", rules, about, Path(unit.source.path))
