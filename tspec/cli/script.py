"""Commands that start a script: what stands behind `--` is the script's, and tspec reads none of it."""

from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperCommand

KEY = "tspec.script"


class StartsAScript(TyperCommand):
    """A command of which the arguments end at the first `--`; `script` gives those behind it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep what stands behind `--` away from the command's own parser."""
        own, behind = split(args)
        ctx.meta[KEY] = behind
        return super().parse_args(ctx, own)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage line shows where the script goes."""
        return [*super().collect_usage_pieces(ctx), "-- script.py ARGS..."]


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments before the first `--`, and those behind it."""
    if "--" not in arguments:
        return list(arguments), []
    place = list(arguments).index("--")
    return list(arguments[:place]), list(arguments[place + 1 :])


def script(ctx: typer.Context) -> list[str]:
    """The script and its arguments. Raises UsageError if there is none."""
    behind: list[str] = ctx.meta.get(KEY, [])
    if not behind:
        raise typer.BadParameter("the script is missing: `-- script.py ARGS...`", ctx=ctx)
    return behind
