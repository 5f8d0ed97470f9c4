"""Commands that start a script: after `--` comes a script or `-m` and a module, with arguments."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from tspec.cli.output import FAULT
from tspec.cli.say import BadParameter, say

KEY = "tspec.script"


class ScriptCommand(TyperCommand):
    """A command whose own arguments end at the first `--`; `command_of` gives those after it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Hide the arguments after `--` from the command's own parser."""
        own, behind = split(args)
        ctx.meta[KEY] = behind
        if not behind and (script := _script_among(own)):
            raise BadParameter(f"write `--` before the script: `-- {script}`", ctx=ctx)
        return super().parse_args(ctx, own)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Add the place of the script to the usage line."""
        return [*super().collect_usage_pieces(ctx), "-- (script.py | -m MODULE) ARGS..."]


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments before the first `--`, and those after it."""
    if "--" not in arguments:
        return list(arguments), []
    place = list(arguments).index("--")
    return list(arguments[:place]), list(arguments[place + 1 :])


def _script_among(own: Sequence[str]) -> str | None:
    """The first argument that is a Python file, and not the value of an option."""
    for before, argument in zip(["", *own], own, strict=False):
        if argument.endswith(".py") and not before.startswith("-") and Path(argument).is_file():
            return argument
    return None


def command_of(ctx: typer.Context) -> tuple[str, ...]:
    """What Python is to run: `script.py ARGS` or `-m module ARGS`.

    Raises BadParameter if there is none. Without torch, which both commands need, the command ends.
    """
    behind: list[str] = ctx.meta.get(KEY, [])
    if not behind:
        raise BadParameter("the script is missing: `-- script.py ARGS...`", ctx=ctx)
    if behind == ["-m"]:
        raise BadParameter("the module is missing: `-- -m package.module ARGS...`", ctx=ctx)
    if behind[0] == "-m" and not _is_importable(behind[1]):
        raise BadParameter(f"there is no module {behind[1]}", ctx=ctx)
    if behind[0] != "-m" and not Path(behind[0]).is_file():
        raise BadParameter(_no_script(behind[0], ctx.info_name), ctx=ctx)
    if importlib.util.find_spec("torch") is None:
        say("tspec: torch is not installed: pip install 'tspec-lang[torch]'", err=True)
        raise typer.Exit(FAULT)
    return tuple(behind)


def _no_script(name: str, command: str | None) -> str:
    """The message for an argument that names no file.

    If it names a program, the message says how to combine it with tspec.
    """
    beside = str(Path(sys.executable).parent)
    if not (shutil.which(name) or shutil.which(name, path=beside)):
        return f"there is no script {name}"
    return (
        f"{name} is a program, and no script: write `-- script.py ARGS...` alone. "
        f"A launcher starts tspec: `torchrun OPTIONS -m tspec {command} ... -- script.py`"
    )


def name_of(command: Sequence[str]) -> str:
    """The script's path, or the module's name."""
    return command[1] if command[0] == "-m" else command[0]


def _is_importable(module: str) -> bool:
    """True if the top-level package of a module exists, in this folder or installed.

    Nothing is imported.
    """
    package = module.partition(".")[0]
    if not package:
        return False
    if PathFinder.find_spec(package, [os.getcwd()]) is not None:
        return True
    return package != "__main__" and importlib.util.find_spec(package) is not None
