"""The files of a program: those asked for, and the modules that they use."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from tspec.diagnostics import Related, did_you_mean
from tspec.resolve.findings import Findings
from tspec.resources import SPECS, shipped
from tspec.source import Source, Span
from tspec.syntax import nodes
from tspec.syntax.editions import upgrade
from tspec.syntax.parse import parse

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_MODULE_LINE = re.compile(r"^[ \t]*module[ \t]+([\w.]+)", re.MULTILINE)
_NOT_SPECS = frozenset({"node_modules", "__pycache__", "site-packages", "build", "dist", "venv"})
_MOST_FOLDERS = 5000
"""The number of folders that are searched. A file outside of any project may lie in a large home
folder.
"""
TESTS = ".test.tspec"
"""The ending of files that hold tests of the rules beside them."""
_MARKS_OF_A_PROJECT = ("pyproject.toml", "tspec.toml", ".git")


@dataclass(frozen=True, slots=True)
class Unit:
    """One file that was read. `asked`: its rules count, not just its vocabulary and lets."""

    source: Source
    file: nodes.File
    name: str
    """The name in its `module` line, or empty."""
    asked: bool
    key: str
    """Tells files apart that have no module line."""
    broken: frozenset[str] = frozenset()
    """Names of declarations with syntax errors, in it and in the files that it uses."""
    given: bool = False
    """The file was named itself, or lies in a folder that was named. No pack or `use` brought it.
    """


def is_pack(file: nodes.File) -> bool:
    """True if a file has no rule of its own. It then stands for the rules of the modules that it
    uses.
    """
    own = any(isinstance(each, nodes.Invariant) for each in file.declarations)
    return bool(file.uses) and not own


class Reader:
    """Reads each file once, and finds the modules that files use."""

    def __init__(
        self,
        project: Path | None,
        findings: Findings,
        texts: Mapping[Path, str] | None = None,
        *,
        tests: bool = False,
    ) -> None:
        self._project = project
        self._tests = tests
        self._texts = {str(path.resolve()): text for path, text in (texts or {}).items()}
        self._findings = findings
        self._units: dict[str, Unit] = {}
        self._modules: dict[str, str] = {}
        self._shipped: dict[str, Path] | None = None
        self._own: dict[Path, dict[str, Path]] = {}

    def read(self, paths: Sequence[Path]) -> tuple[Unit, ...]:
        """All units in the order asked, then those used. Unreadable files are reported."""
        for path in paths:
            for file in self._files_of(path):
                self._add_path(file, asked=True)
        return self._follow()

    def read_text(self, source: Source) -> tuple[Unit, ...]:
        """The unit of a text without a file, and those that it uses."""
        self._add(source, str(Path(source.path).absolute()), asked=True)
        return self._follow()

    def _follow(self) -> tuple[Unit, ...]:
        done: set[str] = set()
        while pending := [unit for key, unit in self._units.items() if key not in done]:
            for unit in pending:
                done.add(unit.key)
                for use in unit.file.uses:
                    self._use(unit, use)
        self._open_packs()
        units = tuple(self._units.values())
        _refuse_cycles(units, self._findings)
        return units

    def _open_packs(self) -> None:
        """Asking for a pack asks for the rules of the modules that it uses.

        A `use` line with settings asks for the rules of its module.
        """
        pending = [unit for unit in self._units.values() if unit.asked]
        while pending:
            file = pending.pop().file
            for use in file.uses:
                key = self._modules.get(use.module.text)
                wanted = is_pack(file) or bool(use.settings)
                if key is not None and wanted and not self._units[key].asked:
                    self._units[key] = replace(self._units[key], asked=True)
                    pending.append(self._units[key])

    def rules_of(self, module: str) -> tuple[str, ...] | None:
        """The names of the rules of a module that may not have been read, or None without it."""
        path = self._find(module, self._near())
        if path is None:
            return None
        file = parse(Source.read(path)).file
        return tuple(n.name.text for n in file.declarations if isinstance(n, nodes.Invariant))

    def names(self) -> list[str]:
        """All modules that can be used."""
        own = self._own_modules(self._near())
        return [*self._shipped_modules(), *own, *self._modules]

    def _near(self) -> Path:
        """A file of the project: the first that was asked for, or one of the working folder."""
        asked = (unit for unit in self._units.values() if unit.asked)
        return next((Path(unit.source.path) for unit in asked), Path.cwd() / "x")

    def _files_of(self, path: Path) -> list[Path]:
        """The spec files that a path stands for: a file, a folder, a shipped module or pack."""
        if path.name in ("", ".."):
            path = path.resolve()
        if path.is_dir():
            found = self._below(path)
            if not found:
                self._complain("TS0103", f"the folder `{path}` holds no .tspec file", path)
            return found
        if path.exists():
            return [path]
        for candidate in _shipped_paths(path):
            if candidate.is_dir():
                return self._below(candidate)
            if candidate.is_file():
                return [candidate]
        if _DOTTED.fullmatch(str(path)) and not str(path).endswith(".tspec"):
            found_module = self._find(str(path), Path.cwd() / "x")
            if found_module is not None:
                return [found_module]
        hint = did_you_mean(str(path), [*self._shipped_modules(), *_packs()])
        self._complain("TS0103", f"there is no file, folder, module or pack `{path}`", path, hint)
        return []

    def _below(self, folder: Path) -> list[Path]:
        """The spec files of a folder. Files of tests are left out unless tests are wanted."""
        found = sorted(folder.rglob("*.tspec"))
        return [path for path in found if self._tests or not path.name.endswith(TESTS)]

    def _complain(self, code: str, message: str, path: Path, hint: str | None = None) -> None:
        self._findings.add(code, message, (Source(str(path), ""), Span(0, 0)), hint=hint)

    def _add_path(self, path: Path, *, asked: bool) -> Unit | None:
        key = str(path.resolve())
        if key in self._units:
            return self._units[key]
        try:
            text = self._texts.get(key)
            source = Source.read(path) if text is None else Source(str(path), text)
        except OSError as problem:
            self._complain("TS0103", f"cannot read `{path}`: {problem.strerror}", path)
            return None
        return self._add(source, key, asked=asked)

    def _add(self, source: Source, key: str, *, asked: bool) -> Unit:
        parsed = parse(source)
        if parsed.file.edition is not None:
            # Text of an older edition is read as if it were written today.
            parsed = replace(parsed, file=upgrade(parsed.file).file)
        self._findings.extend(parsed.diagnostics)
        module = parsed.file.module
        name = module.name.text if module else ""
        unit = Unit(source, parsed.file, name, asked, key, parsed.broken, given=asked)
        self._units[key] = unit
        if module:
            first = self._units.get(self._modules.setdefault(unit.name, key))
            if first is not None and first is not unit and first.file.module:
                message = f"two files are the module `{unit.name}`"
                there = Related(first.file.module.name.span, "the other one", first.source)
                place = (source, module.name.span)
                self._findings.add("TS0105", message, place, related=(there,))
        return unit

    def _use(self, unit: Unit, use: nodes.Use) -> None:
        name = use.module.text
        if name in self._modules:
            return
        path = self._find(name, Path(unit.source.path))
        if path is not None:
            found = self._add_path(path, asked=False)
            if found is not None and found.name == name:
                return
            if found is not None:
                says = (
                    f"its module line says `{found.name}`"
                    if found.name
                    else "it has no module line"
                )
                message = f"`{path.name}` stands where `{name}` is looked for, but {says}"
                self._findings.add("TS0100", message, (unit.source, use.module.span))
            return
        own = self._own_modules(Path(unit.source.path))
        known = [*self._shipped_modules(), *own, *self._modules]
        self._findings.add(
            "TS0100",
            f"there is no module `{name}`",
            (unit.source, use.module.span),
            hint=did_you_mean(name, known),
        )

    def _find(self, name: str, user: Path) -> Path | None:
        """The file of a module: the shipped ones first, then the project's own."""
        if name in self._shipped_modules():
            return self._shipped_modules()[name]
        by_place = Path(*name.split(".")).with_suffix(".tspec")
        for root in dict.fromkeys((self._root_of(user), user.parent)):
            if (root / by_place).is_file():
                return root / by_place
        return self._own_modules(user).get(name)

    def _root_of(self, user: Path) -> Path:
        if self._project is not None:
            return self._project
        folder = user.absolute().parent
        for parent in (folder, *folder.parents):
            if any((parent / mark).exists() for mark in _MARKS_OF_A_PROJECT):
                return parent
        return folder

    def _own_modules(self, user: Path) -> dict[str, Path]:
        root = self._root_of(user)
        if root not in self._own:
            self._own[root] = dict(_modules_under(root))
        return self._own[root]

    def _shipped_modules(self) -> dict[str, Path]:
        if self._shipped is None:
            self._shipped = {
                name: path for folder in SPECS for name, path in _modules_under(shipped(folder))
            }
        return self._shipped


def _modules_under(root: Path) -> Iterator[tuple[str, Path]]:
    """Module names by file; hidden folders, environments and builds are left out."""
    for folder, folders, files in islice(os.walk(root), _MOST_FOLDERS):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _NOT_SPECS
            and not (Path(folder) / name / "pyvenv.cfg").exists()
        )
        for name in sorted(files):
            path = Path(folder) / name
            if path.suffix == ".tspec":
                line = _MODULE_LINE.search(path.read_text(encoding="utf-8", errors="replace"))
                if line:
                    yield line.group(1), path


def _shipped_paths(path: Path) -> list[Path]:
    """The possible paths of a pack that is named as in the documentation: `specs/essentials`."""
    parts = path.parts
    if path.is_absolute() or ".." in parts or not parts or parts[0] not in ("specs", "stdlib"):
        return []
    folder = shipped("specs" if parts[0] == "specs" else "stdlib")
    inside = folder.joinpath(*parts[1:])
    return [inside, inside.with_suffix(".tspec")]


def _packs() -> list[str]:
    try:
        folder = shipped("specs")
    except FileNotFoundError:
        return []
    return [f"specs/{entry.stem}" for entry in sorted(folder.iterdir())]


def users_last(units: tuple[Unit, ...]) -> tuple[Unit, ...]:
    """The units in topological order: each after those that it uses."""
    by_name = {unit.name: unit for unit in units if unit.name}
    found: dict[str, Unit] = {}
    open_keys: set[str] = set()

    def add(unit: Unit) -> None:
        if unit.key in found or unit.key in open_keys:
            return
        open_keys.add(unit.key)
        for use in unit.file.uses:
            if use.module.text in by_name:
                add(by_name[use.module.text])
        found[unit.key] = unit

    for unit in units:
        add(unit)
    return tuple(found.values())


def _refuse_cycles(units: tuple[Unit, ...], findings: Findings) -> None:
    """Modules that use themselves, over others or at once: each circle is reported once."""
    by_name = {unit.name: unit for unit in units if unit.name}
    reported: set[frozenset[str]] = set()
    for unit in by_name.values():
        for use in unit.file.uses:
            circle = _way(use.module.text, unit.name, by_name)
            if circle is None or frozenset(circle) in reported:
                continue
            reported.add(frozenset(circle))
            way = " -> ".join([unit.name, *circle])
            message = f"modules use each other in a circle: {way}"
            findings.add("TS0101", message, (unit.source, use.module.span))


def _way(start: str, goal: str, by_name: dict[str, Unit]) -> list[str] | None:
    """The shortest chain of uses from one module to another, both included."""
    chains = [[start]]
    seen = {start}
    while chains:
        chain = chains.pop(0)
        if chain[-1] == goal:
            return chain
        unit = by_name.get(chain[-1])
        for use in unit.file.uses if unit else ():
            if use.module.text not in seen:
                seen.add(use.module.text)
                chains.append([*chain, use.module.text])
    return None
