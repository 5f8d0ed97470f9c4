"""From the verdicts of a check to its report."""

from __future__ import annotations

from dataclasses import replace

from tspec.check.verdicts import Verdicts
from tspec.report import wording
from tspec.report.collect import Symptom, symptoms, tallies
from tspec.report.coordinates import Coordinates, coordinates
from tspec.report.due import without_waiting
from tspec.report.findings import Finding, Report, Tally
from tspec.report.folding import fold
from tspec.report.incomplete import incomplete, undecided
from tspec.report.results import severity
from tspec.resolve.program.documentation import explanation, hint
from tspec.resolve.program.queries import last_step
from tspec.resolve.program.rules import Program


def report(
    program: Program, verdicts: Verdicts, counted: tuple[Tally, ...] | None = None
) -> Report:
    """The findings behind the verdicts, one for each cause, and a tally of each rule.

    A running job reports violated instances and only counts the rest: `counted` are its tallies,
    and `verdicts` need hold no other instances.
    """
    if counted is None:
        found = symptoms(program.rules, without_waiting(program.rules, verdicts))
    else:
        found = tuple(replace(symptom, decided=0) for symptom in symptoms(program.rules, verdicts))
    told = {symptom.rule.qualified for symptom in found}
    causes = fold(found, program.vocabulary)
    at = coordinates(verdicts.groups)
    return Report(
        findings=tuple(
            _finding(
                cause.headline,
                verdicts,
                at,
                tuple(_finding(each, verdicts, at) for each in cause.consequences),
            )
            for cause in causes
        ),
        tallies=tuple(
            replace(tally, waits=bool(tally.violated) and tally.rule not in told)
            for tally in (tallies(program.rules, verdicts) if counted is None else counted)
        ),
        notes=verdicts.notes,
        incomplete=incomplete(verdicts),
        undecided=undecided(verdicts),
        off=tuple((rule.qualified, rule.set_by) for rule in program.off),
    )


def _finding(
    symptom: Symptom,
    verdicts: Verdicts,
    at: Coordinates,
    consequences: tuple[Finding, ...] = (),
) -> Finding:
    rule, first = symptom.rule, wording.subject(symptom)
    named = (", ".join(names) for names in symptom.subjects if names and "#" not in names)
    return Finding(
        rule=rule.qualified,
        file=rule.source.path,
        line=rule.source.position(rule.span.start).line,
        step=symptom.first.step,
        rank=symptom.first.instance.ranks[0] if symptom.first.instance.ranks else 0,
        subject=first,
        message=wording.message(symptom, verdicts.shards),
        values=dict(symptom.first.values),
        ranks=symptom.ranks,
        coordinates={rank: at[rank] for rank in symptom.ranks if rank in at},
        subjects=tuple(named) or ((first,) if first else ()),
        last_step=symptom.last_step,
        violated=symptom.violated,
        decided=symptom.decided,
        cut_off=rule.qualified in verdicts.cut_off,
        looks_until=last_step(rule.when),
        severity=severity(rule),
        action=wording.action(rule),
        set_by=rule.set_by,
        explanation=explanation(rule.doc),
        look=hint(rule.doc),
        location=symptom.first.location,
        consequences=consequences,
    )
