"""`--given tp=1`: what is known of a job before it runs."""

from __future__ import annotations

from typing import Annotated

import typer

GivenOption = Annotated[
    list[str] | None,
    typer.Option("--given", metavar="NAME=VALUE", help="What is known of the job, such as tp=1."),
]

Given = dict[str, bool | int | float | str]


def given_values(given: list[str] | None) -> Given:
    """The names and values. Raises BadParameter for what is no NAME=VALUE, or says a name twice."""
    values: Given = {}
    for item in given or ():
        name, equals, text = item.partition("=")
        if not (name and equals and text):
            raise typer.BadParameter(f"`{item}` is no NAME=VALUE", param_hint="--given")
        if name in values:
            raise typer.BadParameter(f"`{name}` is given twice", param_hint="--given")
        values[name] = value(text)
    return values


def value(text: str) -> bool | int | float | str:
    """A number or truth value where the text is one, else the text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
