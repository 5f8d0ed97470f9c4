"""`tspec why RULE --trace DIR`: why a rule fired in a recording, and why it did not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tspec.cli.options import spread
from tspec.cli.project import Project
from tspec.cli.rule_named import RuleSpecsOption, rule_named
from tspec.cli.say import say, say_json


class OutputFormat(StrEnum):
    """The formats of an answer."""

    TEXT = "text"
    JSON = "json"


TraceOption = Annotated[
    Path, typer.Option("--trace", metavar="DIR", exists=True, file_okay=False, help="A recording.")
]


@dataclass(frozen=True, slots=True)
class Selection:
    """The instances that the question is about."""

    step: Annotated[
        int | None, typer.Option("--step", metavar="N", help="Only instances of this step.")
    ] = None
    rank: Annotated[int | None, typer.Option("--rank", metavar="R", help="Only this rank.")] = None
    subject: Annotated[
        str | None,
        typer.Option("--subject", metavar="S", help="Only this subject, such as head.weight."),
    ] = None


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Options for the form of the answer."""

    show: Annotated[
        int, typer.Option("--show", metavar="N", min=1, help="How many of each to show.")
    ] = 3
    output_format: Annotated[
        OutputFormat, typer.Option("--output-format", help="How the answer is written.")
    ] = OutputFormat.TEXT


@spread
def why(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="Such as loss_does_not_spike.")],
    trace: TraceOption,
    project: Project,
    selection: Selection,
    options: OutputOptions,
    specs: RuleSpecsOption = None,
) -> None:
    """Say why a rule fired in a recording, or why it did not.

    For a rule that did not fire: the instances that came nearest, and what they lacked.
    """
    from tspec.why.ask import InstanceFilter
    from tspec.why.ask import why as ask
    from tspec.why.show import as_plain, as_text

    found, _ = rule_named(rule, specs, project.project)
    answer = ask(
        found,
        trace,
        InstanceFilter(selection.step, selection.rank, selection.subject),
        options.show,
    )
    if options.output_format is OutputFormat.JSON:
        say_json(as_plain(answer))
    else:
        say(as_text(answer, options.show), form="titled")
