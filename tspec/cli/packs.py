"""`tspec packs [PATHS]`: the packs of rules that exist, and their versions."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.say import say, say_json
from tspec.printable import visible

if TYPE_CHECKING:
    from tspec.resolve.packs import Pack, PackRule

WIDTH = 80
NARROWEST = 30
"""Columns that a purpose has on any terminal."""


class PacksFormat(StrEnum):
    """The formats of the list of packs."""

    TEXT = "text"
    JSON = "json"


def packs(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATHS",
            exists=True,
            help="Spec files or folders.",
            show_default="what ships with tspec",
        ),
    ] = None,
    output_format: Annotated[
        PacksFormat, typer.Option("--output-format", help="How packs are listed.")
    ] = PacksFormat.TEXT,
) -> None:
    """List packs of rules: name, version, number of rules, purpose."""
    from tspec.resolve.packs import packs as find

    found = find(paths or ())
    if output_format is PacksFormat.JSON:
        listed = [{**asdict(pack), "path": str(pack.path)} for pack in found]
        say_json(listed)
        return
    if not found:
        say(f"no pack in {', '.join(map(str, paths or ()))}", err=True)
    width = shutil.get_terminal_size().columns
    name = max((len(pack.name) for pack in found), default=0)
    version = max((len(pack.version) for pack in found), default=0)
    for pack in found:
        head = f"{pack.name:<{name}}  {pack.version:<{version}}  {pack.rules:>3} "
        head += f"{'rules' if pack.rules != 1 else 'rule '}  "
        about = textwrap.wrap(visible(pack.about), max(width - len(head), NARROWEST)) or [""]
        say(f"{head}{about[0]}".rstrip())
        for line in about[1:]:
            say(f"{' ' * len(head)}{line}")


def as_text(pack: Pack, rules: Sequence[PackRule]) -> str:
    """A pack for `tspec explain`: its purpose, and its rules by module with a sentence each."""
    return "\n".join(_lines(pack, rules))


def _lines(pack: Pack, rules: Sequence[PackRule]) -> Iterator[str]:
    number = f"{pack.rules} rule{'s' if pack.rules != 1 else ''}"
    yield f"{pack.name} {pack.version}".rstrip()
    yield f"  module, {number}"
    yield ""
    yield from _wrapped(f"{pack.about}.", "")
    for module, of_module in groupby(rules, lambda rule: rule.module):
        yield ""
        yield f"Rules of {module}"
        for rule in of_module:
            yield f"  {rule.name}"
            yield from _wrapped(rule.about, "    ")
    if rules:
        yield ""
        yield "`tspec explain RULE` says all of one."


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        visible(text), WIDTH, initial_indent=indent, subsequent_indent=indent,
        break_on_hyphens=False,
    )  # fmt: skip
