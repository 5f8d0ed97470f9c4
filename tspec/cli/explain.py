"""`tspec explain`: the meaning of a diagnostic or a name, the text and cost of a rule, the rules of a pack."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tspec.cli.options import spread
from tspec.cli.packs import as_text as pack_as_text
from tspec.cli.project import Project
from tspec.cli.rule_named import RuleSpecsOption, rule_named
from tspec.cli.say import BadParameter, say, say_json
from tspec.cli.why import OutputFormat
from tspec.vocabulary.entries import VocabularyEntry, named
from tspec.vocabulary.page import as_markdown, vocabulary
from tspec.vocabulary.page import as_text as names_as_text

_CODE = re.compile(r"[A-Za-z]{2}\d+")


@spread
def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE|RULE|PACK|NAME", show_default=False,
            help="TS0112, loss_is_finite, std.hygiene, optimizer.step, parameter.grad, during.",
        ),
    ] = None,
    *,
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
    all_names: Annotated[
        bool, typer.Option("--vocabulary", help="Print all that a rule can name, as Markdown.")
    ] = False,
) -> None:  # fmt: skip
    """Explain a diagnostic, a rule, a pack, or a name in rules.

    For a rule: its documentation, its cost, its hooks and their code. For a pack or module: its rules. Names are those of events, entities, fields,
    context values, groups, features, folds, functions and keywords.
    """
    if all_names:
        say(as_markdown(vocabulary()).rstrip("\n"))
        return
    if not name:
        raise BadParameter(
            "name a code, a rule, a pack, or what rules use", param_hint="CODE|RULE|PACK|NAME"
        )
    if _CODE.fullmatch(name):
        say(page_of(name), form="titled")
        return
    words = vocabulary()
    meant = named(name, words)
    if meant and output_format is OutputFormat.JSON:
        say_json([asdict(each) for each in meant])
    elif meant:
        say(names_as_text(meant, words), form="titled")
    elif specs or not _explain_pack(name, output_format):
        _explain_rule(name, words, project, specs, trace, output_format)


def _explain_pack(name: str, output_format: OutputFormat) -> bool:
    """Print a module or pack with its rules. False if the name means none."""
    from tspec.resolve.packs import pack_named

    found = pack_named(name)
    if found is None:
        return False
    pack, rules = found
    if output_format is OutputFormat.JSON:
        of_rules = [asdict(rule) for rule in rules]
        say_json({**asdict(pack), "path": str(pack.path), "rules": of_rules})
    else:
        say(pack_as_text(pack, rules), form="titled")
    return True


def _explain_rule(
    name: str,
    words: tuple[VocabularyEntry, ...],
    project: Project,
    specs: RuleSpecsOption,
    trace: Path | None,
    output_format: OutputFormat,
) -> None:
    from tspec.why.explain import explain as of_rule
    from tspec.why.show_explained import as_plain, as_text

    rule, program = rule_named(
        name, specs, project.project, "CODE|RULE|PACK|NAME", [each.qualified for each in words]
    )
    found, version = of_rule(rule, program, trace), program.versions.get(rule.module, "")
    if output_format is OutputFormat.JSON:
        say_json(as_plain(found, version))
    else:
        say(as_text(found, version), form="titled")


def page_of(code: str) -> str:
    """The page of a code, for a terminal. Raises BadParameter."""
    from tspec.explain import UnknownCode, as_text
    from tspec.explain import explain as page

    try:
        return as_text(page(code))
    except UnknownCode as problem:
        raise BadParameter(str(problem)) from None
