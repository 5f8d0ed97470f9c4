"""`tspec explain CODE`: what a diagnostic means, with a bad and a good example."""

from typing import Annotated

import typer


def explain(
    code: Annotated[str, typer.Argument(metavar="CODE", help="Such as TS0112.")],
) -> None:
    """Explain a diagnostic by its code."""
    from tspec.diagnostics import did_you_mean
    from tspec.resources import PACKAGE

    pages = {page.stem: page for page in (PACKAGE / "codes").glob("TS*.md")}
    page = pages.get(code.upper())
    if page is None:
        hint = did_you_mean(code.upper(), pages)
        raise typer.BadParameter(f"there is no code `{code}`" + (f"; {hint}" if hint else ""))
    typer.echo(page.read_text(encoding="utf-8").rstrip())
