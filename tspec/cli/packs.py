"""`tspec packs [PATHS]`: the packs of rules that exist, and their versions."""

from __future__ import annotations

import shutil
import textwrap
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tspec.cli.say import say, say_json
from tspec.printable import visible

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
