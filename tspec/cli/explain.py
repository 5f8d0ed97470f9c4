"""`tspec explain CODE` and `tspec explain RULE`: what a diagnostic means, or a rule says and costs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from tspec.cli.options import spread
from tspec.cli.project import Project
from tspec.cli.rule_named import RuleSpecsOption, rule_named
from tspec.cli.say import BadParameter, say, say_json
from tspec.cli.why import OutputFormat

_CODE = re.compile(r"[A-Za-z]{2}\d+")


@spread
def explain(
    name: Annotated[str, typer.Argument(metavar="CODE|RULE", help="TS0112, loss_is_finite.")],
    project: Project,
    specs: RuleSpecsOption = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace", metavar="DIR", exists=True, file_okay=False,
            help="A recording that gives the sizes of what a rule reads.",
        ),
    ] = None,
    output_format: Annotated[
        OutputFormat, typer.Option("--output-format", help="How a rule is explained.")
    ] = OutputFormat.TEXT,
) -> None:  # fmt: skip
    """Explain a diagnostic by its code, or a rule: in words, its costs, its hooks, its code."""
    if _CODE.fullmatch(name):
        say(page_of(name))
        return
    from tspec.why.explain import explain as of_rule
    from tspec.why.show_explained import as_plain, as_text

    rule, program = rule_named(name, specs, project.project, "CODE|RULE")
    found, version = of_rule(rule, program, trace), program.versions.get(rule.module, "")
    if output_format is OutputFormat.JSON:
        say_json(as_plain(found, version))
    else:
        say(as_text(found, version))


def page_of(code: str) -> str:
    """The page of a code. Raises BadParameter."""
    from tspec.explain import UnknownCode
    from tspec.explain import explain as page

    try:
        return page(code)
    except UnknownCode as problem:
        raise BadParameter(str(problem)) from None
