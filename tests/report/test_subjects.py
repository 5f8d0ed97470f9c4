"""Subjects that fail together are named in the model's order, in a run and over its recording."""

from __future__ import annotations

from dataclasses import replace

from tests.report import scenes
from tspec.report.build import report
from tspec.report.results import from_report
from tspec.trace.model import Context, Sample
from tspec.trace.subjects import places
from tspec.trace.write import table

NAMES = ("stem.weight", "blocks.0.weight", "head.bias", "a.scale")


def test_the_models_order_is_that_of_places() -> None:
    rule = scenes.rule("small", scenes.changes(), over="parameter")
    found = [one for name in sorted(NAMES) for one in scenes.decided(rule, [1], subject=name)]
    places = {name: place for place, name in enumerate(NAMES)}
    verdicts = replace(scenes.verdicts(found), places=places)
    [finding] = report(scenes.program(rule), verdicts).findings
    assert (finding.subject, finding.subjects) == ("stem.weight", NAMES)


def test_of_numbered_subjects_the_first_is_named() -> None:
    rule = scenes.rule("small", scenes.changes(), over="batch")
    found = [one for name in ("#0", "#3") for one in scenes.decided(rule, [1], subject=name)]
    program = scenes.program(rule)
    [finding] = report(program, scenes.verdicts(found)).findings
    assert (finding.subject, finding.violated) == ("p #0", 2)
    assert finding.subjects == ("p #0",)
    [result] = from_report(report(program, scenes.verdicts(found)), program).results
    assert (result.properties["subjects"], result.in_run) == (["p #0"], "step 1, rank 0: p #0")


def test_places_in_a_recording_are_those_of_first_samples() -> None:
    samples = [
        Sample(seq, Context(), "parameter", name, {"trained": True})
        for seq, name in enumerate((*NAMES, *reversed(NAMES)))
    ]
    assert places(table(samples)) == {name: place for place, name in enumerate(NAMES)}


def test_formats_of_one_line_say_how_many_more_there_are() -> None:
    rule = scenes.rule("small", scenes.changes(), over="parameter")
    found = [one for name in NAMES for one in scenes.decided(rule, [1], subject=name)]
    program = scenes.program(rule)
    [result] = from_report(report(program, scenes.verdicts(found)), program).results
    assert result.in_run == "step 1, rank 0: stem.weight and 3 more"
