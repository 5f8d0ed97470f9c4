"""Whatever a name or a text holds, each format shows it as text: nothing is obeyed, no line is forged."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from tests.faults.hostile import HOSTILE, commands, texts, unprintable
from tests.report.schemas import schema
from tspec.diagnostics import Diagnostic, Related, render
from tspec.diff.changes import ChangedPart, Changes, DeclarationChange, DeclarationText
from tspec.diff.formats.terminal import print_changes
from tspec.diff.witness.witness import Witness
from tspec.printable import lines
from tspec.report.findings import Finding, Report, Tally
from tspec.report.formats import FORMATS, written
from tspec.report.formats.github import write as as_commands
from tspec.report.results import (
    Case,
    Region,
    Result,
    Results,
    RuleHelp,
    fingerprint,
    from_diagnostic,
    from_finding,
)  # fmt: skip
from tspec.report.terminal import print_report
from tspec.resolve.program.rules import Program, Vocabulary
from tspec.runtime.messages.findings import FindingsWriter
from tspec.runtime.results import InstanceResult, RuleRecord
from tspec.source import Source, Span
from tspec.trace.model import Ending
from tspec.trace.shards import ParameterSharding
from tspec.trace.show import StreamSummary, TraceSummary
from tspec.trace.show import text as trace_text
from tspec.values import Location

SCHEMA = schema()
NOTHING = Program((), Vocabulary((), (), (), ()))
QUICK = settings(deadline=None, max_examples=60)
files = texts.filter(lambda text: not re.search("[\ud800-\udc7f\udd00-\udfff\0]", text))
"""Names that a file can have."""


def finding(text, file):
    return Finding(
        text, file, 3, 1, 0, text, text, {text: text}, (0,), (text, text), 1, 1, 1, "warning",
        "stop", file, text, text, Location(file, 1, text, text),
    )  # fmt: skip


def results(text, file):
    """Results of which every text is this one."""
    source = Source(file, text)
    span = Span(0, len(text))
    diagnostic = Diagnostic(
        "TS0110", text, span, source, (Related(span, text, Source(file, text)),), text
    )
    own = Result(
        text, text, Region(file, 1, 1, 1, 2, text), "warning", text, text,
        {"subject": text, "step": 1, "values": {text: text}}, fingerprint(text),
        (Region(file, 1, 1, 1, 2, text),), (Result(text, text, Region(file)),), "",
    )  # fmt: skip
    return Results(
        (
            own,
            from_diagnostic(diagnostic, {"test": text}),
            from_finding(finding(text, file), NOTHING),
        ),
        (Case(text, file, "failed", text, 1, {text: text}), Case(text, file, "skipped", text)),
        (text,),
        "check",
        (file,),
        {text: RuleHelp(text, text, text, "warning", {"pack": text})},
        (Result("TS0700", text, Region(file), help=text, properties={"ranks": [0]}),),
    )


def check_all(text, file):
    found = results(text, file)
    for output_format in FORMATS:
        shown = written(found, output_format)
        shown.encode()
        assert unprintable(shown) == set(), output_format
        if output_format != "github":
            assert commands(shown) == [], output_format
    document = ElementTree.fromstring(written(found, "junit").encode())
    assert document.tag == "testsuites"
    tags = {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
        "skipped",
        "properties",
        "property",
    }
    assert {node.tag for node in document.iter()} <= tags
    log = json.loads(written(found, "sarif"))
    jsonschema.validate(log, SCHEMA)
    objects = json.loads(written(found, "json"))
    assert len(objects) == 4
    if text.isprintable():
        assert objects[0]["message"] == text
    said = as_commands(found).splitlines()
    # One for each result, consequence and recording that ends early, and the fault.
    assert len(said) == 6
    assert all(re.match("::(error|warning|notice) ", each) for each in said)


@pytest.mark.parametrize("text", HOSTILE)
def test_each_format_shows_a_hostile_text(text):
    check_all(text, "a.tspec" if re.search("[\ud800-\udc7f\0]", text) else f"{text}.tspec")


@pytest.mark.slow
@QUICK
@given(texts, files)
def test_each_format_shows_any_text(text, file):
    check_all(text, file)


def shown_on(width, show):
    """What is printed to a console that is no terminal."""
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    show(console)
    return console.file.getvalue()


@QUICK
@given(texts, files, st.sampled_from([40, 80]))
def test_the_terminal_shows_any_text(text, file, width):
    one = finding(text, file)
    tallies = (Tally(f"a.{text}", unknown=1, reasons=((text, 1),)), Tally(text, violated=1))
    report = Report((one,), tallies, (text,), (text,), ((text, file),))
    change = DeclarationChange(
        "rule", text, "loosened", DeclarationText(text, file, 1), DeclarationText(text, file, 1), text,
        (ChangedPart("when", "loosened", text, text),), (Witness(((text, text),), "a", "b", True, (text,)),),
        (text,),
    )  # fmt: skip
    for show in (
        lambda console: print_report(report, NOTHING, console),
        lambda console: print_changes(Changes((change,), 0), console),
    ):
        shown = shown_on(width, show)
        shown.encode()
        assert unprintable(shown) == set()
        assert commands(shown) == []


@pytest.mark.parametrize("text", ["[red]x[/red]", "[/]", "[link=http://evil.example]x[/link]"])
def test_markup_is_shown_as_it_is(text):
    report = Report((finding(text, "a.tspec"),), ())
    shown = shown_on(80, lambda console: print_report(report, NOTHING, console))
    assert f"warning: {text}\n" in shown
    assert f"step 1, rank 0: {text}" in shown


@QUICK
@given(texts, files)
def test_a_diagnostic_shows_any_text(text, file):
    source = Source(file, text)
    shown = render(Diagnostic("TS0110", text, Span(0, 1), source, (), text))
    shown = lines(shown)
    assert unprintable(shown) == set()
    assert commands(shown) == []


@QUICK
@given(texts, files)
def test_the_summary_of_a_trace_shows_any_text(text, file):
    stream = StreamSummary(0, None, 1, 1, Ending("finished"), (1, 1), (1, 1))
    summary = TraceSummary(
        Path(file),
        1,
        {text: text},
        (stream,),
        {text: 1},
        {text: 1},
        (text,),
        (text,),
        {},
    )
    shown = trace_text(summary)
    for each in (
        shown,
        trace_text(replace(summary, shardings={text: ParameterSharding((2,), (text,))})),
    ):
        assert unprintable(each) == set()
        assert commands(lines(each)) == []
    plain = TraceSummary(
        Path("a"), 1, {"a": "a"}, (stream,), {"a": 1}, {"a": 1}, ("a",), ("a",), {}
    )
    if len(text) < 10 and " " not in text:
        assert len(shown.split("\n")) == len(trace_text(plain).split("\n"))


@QUICK
@given(texts)
def test_a_job_tells_of_a_violation_on_one_line(text):
    declared = RuleRecord(0, text, text, 1, text, False, "", ())
    at = Location(text, 1, text, text)
    outcome = InstanceResult(0, (0,), (1,), (text,), "violated", text, 1, {text: text}, at)
    with patch("sys.stderr", io.StringIO()) as stream:
        FindingsWriter().add(declared, outcome, 0)
    shown = stream.getvalue()
    assert shown.startswith("tspec: step 1 rank 0:")
    assert shown.count("\n") == 1 and shown.endswith("\n")
    assert unprintable(shown) == set()
    assert commands(shown) == []
