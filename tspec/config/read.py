"""Finds and reads the configuration of a project, and reports its errors at their places."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import path as paths
from pathlib import Path
from typing import Any, get_args

from tspec.config.model import (
    CheckSection,
    Config,
    FailOn,
    FmtSection,
    FormatName,
    LintSection,
    RunSection,
    TestSection,
)
from tspec.config.places import EntrySpans, places
from tspec.config.places import Path as Keys
from tspec.config.settings import RULE_ACTIONS, RuleOverride
from tspec.diagnostics import Diagnostic, Related, did_you_mean, in_order
from tspec.schedule import canonical
from tspec.source import Source, Span

NAMES = ("tspec.toml", "pyproject.toml")
"""Files that can hold a configuration."""

_CODE = re.compile(r"TS[0-9]{0,4}")
_HINTS = {
    "Invalid value": "texts stand in quotes, and lists end with `]`",
    "Cannot overwrite a value": "this key is there twice",
}
"""Hints for some of the standard library's messages."""
_WHERE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """The result of reading.

    With errors among the diagnostics, `config` lacks the values they are about.
    """

    config: Config
    diagnostics: tuple[Diagnostic, ...] = ()


def find(folder: Path) -> tuple[Path, ...]:
    """The configurations of the nearest folder that has one: from `folder` upwards.

    A pyproject.toml counts if it has a table `[tool.tspec]`. Two of one folder are an error for
    `read` to report.
    """
    for parent in (folder, *folder.parents):
        found = [parent / name for name in NAMES if (parent / name).is_file()]
        found = [file for file in found if file.name != NAMES[1] or has_table(file)]
        if found:
            return tuple(found)
    return ()


def project_of(folder: Path) -> Path:
    """The project's folder: the nearest that has a configuration, else `folder`."""
    return next((file.parent for file in find(folder)), folder)


def read(found: Sequence[Path]) -> ReadConfig:
    """Read the configurations that `find` gave. Never raises but OSError."""
    if not found:
        return ReadConfig(Config())
    sources = [_source(file) for file in found]
    reader = _Reader(sources[0], ("tool", "tspec") if _is_pyproject(found[0]) else ())
    config = reader.config(found[0])
    if len(found) > 1:
        there = places(sources[1].text)[("tool", "tspec")].key
        reader.found.append(
            Diagnostic(
                "TS0504",
                f"{found[1].name} in the same folder holds a configuration too",
                Span(0, 0),
                sources[0],
                (Related(there, "the other one", sources[1]),),
                "keep one of the two",
            )
        )
    return ReadConfig(config, in_order(reader.found))


def _source(file: Path) -> Source:
    shown = paths.relpath(file)
    source = Source.read(file)
    return Source(str(file) if shown.startswith("..") else shown, source.text)


def _is_pyproject(file: Path) -> bool:
    return file.name == NAMES[1]


def has_table(file: Path) -> bool:
    """True if a pyproject.toml has a table for tspec."""
    text = file.read_bytes().decode("utf-8", errors="replace")
    if "tspec" not in text:
        return False
    try:
        return "tspec" in tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError:
        return bool(re.search(r"^\s*\[\s*tool\s*\.\s*tspec\b", text, re.MULTILINE))


class _InvalidValue(Exception):
    """A value was refused, and that was reported."""


@dataclass(slots=True)
class _Reader:
    """Reads one text, and collects its errors."""

    source: Source
    top: Keys
    found: list[Diagnostic] = field(default_factory=list)
    places: dict[Keys, EntrySpans] = field(default_factory=dict)

    def config(self, file: Path) -> Config:
        try:
            content: Any = tomllib.loads(self.source.text)
        except tomllib.TOMLDecodeError as problem:
            self._not_toml(str(problem))
            return Config(file)
        self.places = places(self.source.text)
        for key in self.top:
            content = content.get(key, {})
        if not isinstance(content, dict):
            self._wrong_type(self.top, "a table")
            return Config(file)
        depth = len(self.top)
        spans = {at[depth:]: place.value for at, place in self.places.items() if len(at) > depth}
        values = self._table(content, self.top, KEYS)
        return Config(file=file, source=self.source, places=spans, **values)

    def _not_toml(self, problem: str) -> None:
        match = _WHERE.search(problem)
        starts = self.source.line_starts
        if match and match[1]:
            start = starts[int(match[1]) - 1] + int(match[2]) - 1
        else:
            start = len(self.source.text.rstrip())
        message = _WHERE.sub("", problem)
        hint = _HINTS.get(message)
        message = f"this is no TOML: {message[0].lower()}{message[1:]}"
        self.found.append(Diagnostic("TS0500", message, Span(start, start), self.source, hint=hint))

    def _table(
        self, content: Mapping[str, Any], at: Keys, keys: Mapping[str, Kind]
    ) -> dict[str, Any]:
        """The values of a table by the names of fields. Values with errors are left out."""
        found = {}
        for key, value in content.items():
            kind = keys.get(key)
            if kind is None:
                hint = did_you_mean(key, keys) or _listed(keys)
                if key == "tool" and not at:
                    hint = "in a tspec.toml tables stand without `tool.tspec.` before their names"
                table = ".".join(map(str, at))
                where = f" in `[{table}]`" if table else ""
                self.error("TS0501", f"there is no key `{key}`{where}", (*at, key), hint, key=True)
                continue
            try:
                found[key.replace("-", "_")] = kind(self, value, (*at, key))
            except _InvalidValue:
                continue
        return found

    def error(
        self, code: str, message: str, at: Keys, hint: str | None = None, key: bool = False
    ) -> None:
        """Report something at a value, or at its key."""
        place = self.places[at]
        span = place.key if key else place.value
        self.found.append(Diagnostic(code, message, span, self.source, hint=hint))

    def _wrong_type(self, at: Keys, wanted: str) -> None:
        self.error("TS0502", f"`{at[-1] if at else 'this'}` takes {wanted}", at)

    def refuse(self, code: str, message: str, at: Keys, hint: str | None = None) -> Any:
        """Report something at a value, and give the value up."""
        self.error(code, message, at, hint)
        raise _InvalidValue


Kind = Callable[[_Reader, Any, Keys], Any]
"""Reads a value at a place, or reports it and raises `_InvalidValue`."""


def _key(at: Keys) -> str:
    """The key that a value belongs to: that of the array, for one of its elements."""
    return next(str(each) for each in reversed(at) if isinstance(each, str))


def _text(reader: _Reader, value: Any, at: Keys) -> str:
    if not isinstance(value, str):
        reader.refuse("TS0502", f"`{_key(at)}` takes {_A_TEXT[isinstance(at[-1], int)]}", at)
    assert isinstance(value, str)
    return value


_A_TEXT = ('a text, such as "name"', 'texts, such as ["one", "two"]')


def _texts(reader: _Reader, value: Any, at: Keys) -> tuple[str, ...]:
    return _list(reader, value, at, _text, _A_TEXT[1])


def _list(reader: _Reader, value: Any, at: Keys, kind: Kind, wanted: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        reader.refuse("TS0502", f"`{_key(at)}` takes a list of {wanted}", at)
    found = []
    for number, each in enumerate(value):
        found.append(kind(reader, each, (*at, number)))
    return tuple(found)


def _code(reader: _Reader, value: Any, at: Keys) -> str:
    text = _text(reader, value, at)
    if not _CODE.fullmatch(text):
        hint = "write a code or the beginning of one, such as `TS0402` or `TS04`"
        reader.refuse("TS0503", f"`{text}` is no code", at, hint)
    return text


def _codes(reader: _Reader, value: Any, at: Keys) -> tuple[str, ...]:
    return _list(reader, value, at, _code, 'codes, such as ["TS0402"]')


def _codes_by_path(reader: _Reader, value: Any, at: Keys) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        reader.refuse("TS0502", f"`{_key(at)}` takes a table of codes by path", at)
    return {pattern: _codes(reader, each, (*at, pattern)) for pattern, each in value.items()}


def _one_of(choices: Sequence[str], what: str) -> Kind:
    def kind(reader: _Reader, value: Any, at: Keys) -> str:
        text = _text(reader, value, at)
        if text not in choices:
            hint = did_you_mean(text, choices) or _listed(choices)
            reader.refuse("TS0503", f"there is no {what} `{text}`", at, hint)
        return text

    return kind


def _number(least: float, most: float, what: str) -> Kind:
    def kind(reader: _Reader, value: Any, at: Keys) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            reader.refuse("TS0502", f"`{_key(at)}` takes {what}", at)
        if not least <= value <= most:
            reader.refuse("TS0503", f"`{_key(at)}` takes {what}", at)
        return float(value)

    return kind


def _truth(reader: _Reader, value: Any, at: Keys) -> bool:
    if not isinstance(value, bool):
        reader.refuse("TS0502", f"`{_key(at)}` takes true or false", at)
    return bool(value)


def _steps(reader: _Reader, value: Any, at: Keys) -> str:
    """A schedule of steps."""
    text = _text(reader, value, at)
    try:
        return canonical(text)
    except ValueError as wrong:
        reader.refuse("TS0503", str(wrong), at)
    return ""


def _rules(reader: _Reader, value: Any, at: Keys) -> tuple[RuleOverride, ...]:
    """Rules by name. Names may be in quotes or not: without them TOML makes tables of their parts."""
    if not isinstance(value, dict):
        reader.refuse("TS0502", "`rules` takes a table of actions by rule", at)
    found = []
    for keys, said in _leaves(value, at):
        try:
            action = _one_of(RULE_ACTIONS, "action")(reader, said, keys)
        except _InvalidValue:
            continue
        name = ".".join(map(str, keys[len(at) :]))
        found.append(RuleOverride(name, action, reader.source, reader.places[keys].key))
    return tuple(found)


def _leaves(value: Mapping[str, Any], at: Keys) -> Iterator[tuple[Keys, Any]]:
    for key, each in value.items():
        if isinstance(each, dict):
            yield from _leaves(each, (*at, key))
        else:
            yield (*at, key), each


def _section(section: type[Any], kinds: Mapping[str, Kind]) -> Kind:
    names = {each.name.replace("_", "-") for each in fields(section)}
    assert names == set(kinds), names ^ set(kinds)

    def kind(reader: _Reader, value: Any, at: Keys) -> Any:
        if not isinstance(value, dict):
            reader.refuse("TS0502", f"`{_key(at)}` takes a table", at)
        return section(**reader._table(value, at, kinds))

    return kind


def _listed(names: Sequence[str] | Mapping[str, Any]) -> str:
    *rest, last = (f"`{name}`" for name in names)
    return f"there are {', '.join(rest)} and {last}" if rest else f"there is {last}"


KEYS: dict[str, Kind] = {
    "specs": _texts,
    "rules": _rules,
    "output-format": _one_of(get_args(FormatName), "format"),
    "baseline": _text,
    "check": _section(CheckSection, {"require-complete": _truth}),
    "run": _section(
        RunSection,
        {
            "fail-on": _one_of(get_args(FailOn), "severity"),
            "require-instances": _truth,
            "check-steps": _steps,
        },
    ),
    "lint": _section(
        LintSection,
        {
            "select": _codes,
            "ignore": _codes,
            "per-file-ignores": _codes_by_path,
            "passes": _number(0, 1e9, "a number of passes over the parameters"),
            "collectives": _number(0, 1e9, "a number of collectives"),
        },
    ),
    "fmt": _section(FmtSection, {"exclude": _texts}),
    "test": _section(
        TestSection, {"paths": _texts, "fail-under": _number(0, 100, "a number from 0 to 100")}
    ),
}
"""All keys, and how their values are read."""
