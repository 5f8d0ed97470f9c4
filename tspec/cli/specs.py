"""The SPECS of a command: files, folders, shipped modules and packs, loaded or complained about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    pass

SpecsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SPECS...",
        help="Spec files or folders, shipped modules (std.hygiene) or packs (by name).",
        show_default=False,
    ),
]


def paths_of(specs: list[str]) -> list[Path]:
    """The files and folders that SPECS name. Raises BadParameter for what names none."""
    return [_path(spec) for spec in specs]


def _path(spec: str) -> Path:
    from tspec.diagnostics import did_you_mean
    from tspec.resources import shipped

    path = Path(spec)
    if path.exists():
        return path
    packs, library = shipped("specs"), shipped("stdlib")
    modules = {f"std.{file.stem}": file for file in library.glob("*.tspec")}
    named = {
        **modules,
        **{file.stem: file for file in packs.glob("*.tspec")},
        **{folder.name: folder for folder in packs.iterdir() if folder.is_dir()},
    }
    if spec in named:
        return named[spec]
    siblings = [str(path.parent / other.name) for other in path.parent.glob("*.tspec")]
    hint = did_you_mean(spec, [*named, *siblings])
    raise typer.BadParameter(
        f"no file, folder, shipped module or pack is called `{spec}`"
        + (f"; {hint}" if hint else "")
    )
