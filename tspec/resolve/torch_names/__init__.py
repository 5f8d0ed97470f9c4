"""The names of torch: classes, functions, methods and their parameters, without importing it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypedDict, cast


class _Class(TypedDict):
    bases: list[str]
    methods: dict[str, list[str] | None]


class _Names(TypedDict):
    version: str
    modules: list[str]
    classes: dict[str, _Class]
    functions: dict[str, list[str] | None]
    aliases: dict[str, str]


@cache
def _names() -> _Names:
    text = Path(__file__).with_name("torch.json").read_text(encoding="utf-8")
    return cast(_Names, json.loads(text))


def version() -> str:
    """The version of torch whose names ship."""
    return _names()["version"]


def is_class(path: str) -> bool:
    """True if a path such as `torch.nn.Conv2d` or `torch.nn.modules.conv.Conv2d` is a class of
    torch.
    """
    return _canonical(path) in _names()["classes"]


def is_module(path: str) -> bool:
    """True if the path is a module of torch, such as `torch.nn.functional`."""
    return path in _names()["modules"]


def is_callable(path: str) -> bool:
    """True if the path is a function, a class, or a method of a class, inherited ones included."""
    return is_class(path) or path in _names()["functions"] or _method(path) is not None


def parameters(path: str) -> list[str] | None:
    """The callable's parameters without `self`, `*args` with stars; None if they are not known."""
    names = _names()
    if path in names["functions"]:
        return names["functions"][path]
    if is_class(path):
        path = f"{path}.__init__"
    found = _method(path)
    return None if found is None or found[0] is None else [p for p in found[0] if p != "self"]


def is_subclass(path: str, base: str) -> bool:
    """True if a class of torch is `base` or inherits from it."""
    return _canonical(base) in set(_ancestors(_canonical(path)))


def spellings(path: str) -> str:
    """A class as recordings hold it: its dotted paths along its bases, the most derived first.

    Each in both spellings, where it is defined and where it is known; of a class that is none of
    torch's, its path alone.
    """
    shorter: dict[str, list[str]] = {}
    for alias, canonical in _names()["aliases"].items():
        shorter.setdefault(canonical, []).append(alias)
    found = [path]
    for each in _ancestors(_canonical(path)):
        found += [*shorter.get(each, ()), each]
    return " ".join(dict.fromkeys(found))


def near(path: str) -> list[str]:
    """Names that a misspelt one may have meant: those with the same parent, or the same last part."""
    owner, _, last = path.rpartition(".")
    names = _names()
    found = [name for name in _all() if name.rpartition(".")[0] == owner]
    if is_class(owner):
        for ancestor in _ancestors(_canonical(owner)):
            if ancestor in names["classes"]:
                found += [f"{owner}.{method}" for method in names["classes"][ancestor]["methods"]]
    elsewhere = [name for name in _all() if name.rpartition(".")[2] == last]
    return found or sorted(elsewhere, key=lambda name: (name.count("."), name))[:1]


def _all() -> Iterator[str]:
    names = _names()
    yield from names["aliases"]
    yield from names["classes"]
    yield from names["functions"]
    yield from names["modules"]


def _canonical(path: str) -> str:
    return _names()["aliases"].get(path, path)


def _ancestors(canonical: str) -> Iterator[str]:
    yield canonical
    known = _names()["classes"].get(canonical)
    for base in known["bases"] if known else ():
        yield from _ancestors(_canonical(base))


def _method(path: str) -> tuple[list[str] | None] | None:
    """The parameters of a method in a tuple, or None if there is no such method."""
    owner, _, method = path.rpartition(".")
    for ancestor in _ancestors(_canonical(owner)):
        known = _names()["classes"].get(ancestor)
        if known and method in known["methods"]:
            return (known["methods"][method],)
    return None
