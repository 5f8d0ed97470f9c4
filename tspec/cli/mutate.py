"""`tspec mutate SPECS… [--tests PATHS]`: mutate rules, and report the mutants that no test detects."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.options import spread
from tspec.cli.output import FOUND, FOUND_NOTHING, Format, Output, accepted, write_file, write_out
from tspec.cli.say import say
from tspec.cli.specs import SpecsArgument
from tspec.printable import visible

if TYPE_CHECKING:
    from tspec.report.results import Result, Results
    from tspec.testing.mutants import Mutant
    from tspec.testing.mutate import MutationResult, RuleMutants


@spread
def mutate(
    output: Output,
    specs: SpecsArgument = None,
    tests: Annotated[
        list[Path] | None,
        typer.Option(
            "--tests", metavar="PATH", help="A further place of tests; may be given several times."
        ),
    ] = None,
    fail_under: Annotated[
        float | None,
        typer.Option(
            "--fail-under", metavar="PERCENT", help="Exit with 1 if fewer mutants are noticed."
        ),
    ] = None,
) -> None:
    """Mutate rules, and report the mutants that no test detects."""
    from tspec.cli.specs import load, specs_of
    from tspec.cli.test import load_tests
    from tspec.testing.mutate import mutate as change

    wanted = specs_of(specs, output.project)
    asked = [rule.qualified for rule in load(wanted).rules]
    more = tests or [output.project.path(each) for each in output.project.test.paths]
    program = load_tests([*wanted, *more])
    known = {rule.qualified: rule for rule in program.rules}
    found = change(program, [known[name] for name in asked])
    results = accepted(_results(found), output).results
    write_file(results, output)
    if output.output_format is Format.TEXT:
        say(as_text(found, results))
    else:
        write_out(results, output)
        say(summary(found), err=True)
    bad = found.score < fail_under if fail_under is not None else bool(results.results)
    raise typer.Exit(FOUND if bad else FOUND_NOTHING)


def _results(found: MutationResult) -> Results:
    """Each mutant that no test detects, and each rule as a case."""
    from tspec.report.results import Case, Results

    return Results(
        tuple(result for each in found.rules for result in _of_rule(each)),
        tuple(
            Case(
                each.rule.qualified,
                each.rule.source.path,
                "failed" if each.survivors else "passed",
                _survival(each) if each.survivors else "",
                each.rule.source.position(each.rule.span.start).line,
            )
            for each in found.rules
        ),
    )


def _of_rule(each: RuleMutants) -> list[Result]:
    """A result for each surviving mutant; a rule without a test has one result for all."""
    from tspec.report.results import Result, fingerprint, region

    rule = each.rule
    if each.tests:
        return [_survivor(mutant) for mutant in each.survivors]
    return [
        Result(
            "TS0621",
            f"{rule.qualified}: {_survival(each)}",
            region(rule.source, rule.span),
            "warning",
            properties={"test": rule.qualified},
            fingerprint=fingerprint("TS0621", rule.qualified),
        )
    ]


def _survivor(mutant: Mutant) -> Result:
    from tspec.report.results import Result, fingerprint, region

    rule = mutant.original
    return Result(
        "TS0620",
        f"no test of `{rule.name}` notices `{mutant.after}` in place of `{mutant.before}`",
        region(rule.source, mutant.span),
        "warning",
        properties={
            "test": rule.qualified,
            "rule": rule.qualified,
            "change": mutant.kind,
            "before": mutant.before,
            "after": mutant.after,
        },
        fingerprint=fingerprint("TS0620", rule.qualified, mutant.before, mutant.after),
    )


def as_text(found: MutationResult, results: Results) -> str:
    """For each rule the number of surviving mutants, then each of them with its line; last the
    summary.
    """
    from tspec.why.place import place

    shown = {each.fingerprint for each in results.results}
    lines: list[str] = []
    for each in found.rules:
        wanted = [r for r in _of_rule(each) if r.fingerprint in shown]
        if wanted:
            at = place(each.rule.source, each.rule.span)
            lines += _wrapped(f"{at} {each.rule.qualified}: {_survival(each)}", "")
        for result in wanted if each.tests else ():
            said = result.properties
            lines += _wrapped(f"{result.line}: {said['before']}  ->  {said['after']}", "  ")
    return "\n".join([*lines, *([""] if lines else []), summary(found)])


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        visible(text),
        80,
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_on_hyphens=False,
    )


def _survival(each: RuleMutants) -> str:
    if not each.tests:
        return f"no test decides it ({each.mutants} changes)"
    return f"{len(each.survivors)} of {each.mutants - each.equivalent} changes unnoticed"


def summary(found: MutationResult) -> str:
    """`412 of 450 changes noticed (91.5%); 12 more say what the rule says`."""
    same = sum(each.equivalent for each in found.rules)
    # Never 100 where something is missing.
    score = f"{int(found.score * 10) / 10:g}%"
    more = f"; {same} more say what the rule says" if same else ""
    return f"{found.noticed} of {found.total} changes noticed ({score}){more}"
