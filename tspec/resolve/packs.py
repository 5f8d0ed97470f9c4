"""Packs: modules with rules, or files that bring such modules, with their versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tspec.resolve.findings import Findings
from tspec.resolve.modules.files import Reader, Unit
from tspec.resolve.modules.versions import version_of
from tspec.resolve.program.documentation import first_sentence
from tspec.resolve.settings import offered
from tspec.resources import shipped


@dataclass(frozen=True, slots=True)
class Pack:
    """A module that brings rules. `about` is the first sentence of its documentation."""

    name: str
    version: str
    rules: int
    about: str
    path: Path


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


def _pack(unit: Unit, rules: int) -> Pack:
    module = unit.file.module
    about = first_sentence(module.doc or "").rstrip(".") if module else ""
    return Pack(unit.name, version_of(unit) or "", rules, about, Path(unit.source.path))
