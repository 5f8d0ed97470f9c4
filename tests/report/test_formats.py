"""SARIF against its schema, JUnit as a parser reads it, GitHub's commands, and fingerprints."""

import io
import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from junitparser import JUnitXml
from markdown_it import MarkdownIt

from tests.report import scenes
from tests.report.scenes import BEFORE_UPDATE, decided, program, rule, verdicts
from tests.report.schemas import schema
from tspec.diagnostics import Diagnostic
from tspec.report.build import report
from tspec.report.figures import Curve, Figure
from tspec.report.formats import FORMATS, written
from tspec.report.formats.html import WIDTH, Dot, drawing, label_of, write
from tspec.report.results import (
    Case,
    Region,
    Result,
    Results,
    about,
    from_diagnostic,
    from_finding,
    from_report,
)
from tspec.resolve import load_text
from tspec.source import Source, Span
from tspec.values import Location

CLEARED = rule("gradients_are_cleared", scenes.contains("optimizer.zero_grad"))
SMALL = rule(
    "gradients_do_not_explode",
    scenes.below(),
    over="parameter",
    window=BEFORE_UPDATE,
)
VACUOUS = rule("vacuous_rule", scenes.contains("b"))
BLIND = rule("blind_rule", scenes.contains("a"))
HELD = rule("held_rule", scenes.contains("c"))
ALL = program(CLEARED, SMALL, VACUOUS, BLIND, HELD)
WRONG = """edition 2026

module example

use std.torch

invariant a_typo {
  before optimizer.stepp
  expect count(parameters.grad) > 0
  else warn
}
"""


def a_run(step: int = 2) -> Results:
    found = report(
        ALL,
        verdicts(
            decided(CLEARED, [step, step + 1]),
            decided(SMALL, [step + 7], subject="fc.weight", values={"norm(p.grad)": "180.5"}),
            decided(VACUOUS, [1], verdict="idle", reason="no group dp"),
            decided(BLIND, [1], verdict="unknown", reason="not recorded"),
            decided(HELD, [1], verdict="holds"),
        ),
    )
    return from_report(replace(found, faults=("internal error at forward",)), ALL)


def a_spec(text: str = WRONG) -> Results:
    found = load_text(text, name="example.tspec").diagnostics
    return Results(tuple(map(from_diagnostic, found)), command="lint", files=("example.tspec",))


def a_strange_one() -> Results:
    region = Region("odd, name: 100%.tspec", 3, 5, 4, 1)
    return Results(
        (
            Result("TS0110", "first: 100%\nsecond, \x1b[1m <&>", region, "warning"),
            Result("no.such.rule", "of a whole file", Region("/elsewhere/a b.tspec"), "draft"),
        )
    )


AT = Location("jobs/train.py", 41, "train_epoch", "opt.step()")


def a_script(at: Location = AT) -> Results:
    return from_report(report(ALL, verdicts(decided(CLEARED, [2], location=at))), ALL)


SCENES = {
    "run": a_run,
    "script": a_script,
    "spec": a_spec,
    "strange": a_strange_one,
    "nothing": lambda: Results(()),
}
each_scene = pytest.mark.parametrize("scene", SCENES.values(), ids=list(SCENES))


@each_scene
def test_sarif_is_valid(scene: Callable[[], Results]) -> None:
    log = json.loads(written(scene(), "sarif"))
    checker = jsonschema.Draft7Validator(schema(), format_checker=jsonschema.FormatChecker())
    assert [error.message for error in checker.iter_errors(log)] == []


def test_the_schema_is_not_lenient() -> None:
    log = json.loads(written(a_run(), "sarif"))
    log["runs"][0]["results"][0]["level"] = "draft"
    assert not jsonschema.Draft7Validator(schema()).is_valid(log)


def sarif_of(scene: Results) -> dict[str, Any]:
    [run] = json.loads(written(scene, "sarif"))["runs"]
    found: dict[str, Any] = run
    return found


def test_sarif_has_rules_regions_fingerprints_and_consequences() -> None:
    run = sarif_of(a_run())
    rules = run["tool"]["driver"]["rules"]
    assert len(rules) == 5
    [result] = run["results"]
    described = rules[result["ruleIndex"]]
    assert described["id"] == result["ruleId"] == "checks.gradients_are_cleared"
    assert described["shortDescription"]["text"] == "What gradients_are_cleared is for."
    [place] = result["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "checks.tspec"},
        "region": {"startLine": 4, "startColumn": 11, "endLine": 4, "endColumn": 32},
    }
    [related] = result["relatedLocations"]
    assert "checks.gradients_do_not_explode" in related["message"]["text"]
    assert result["properties"]["step"] == 2
    assert len(result["partialFingerprints"]["tspecFinding/v1"]) == 24
    [invocation] = run["invocations"]
    assert invocation["executionSuccessful"] is False


def test_sarif_is_at_the_line_of_the_script_and_the_rule_is_related() -> None:
    [result] = sarif_of(a_script())["results"]
    assert result["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "jobs/train.py"},
                "region": {"startLine": 41, "snippet": {"text": "opt.step()"}},
            },
            "logicalLocations": [{"fullyQualifiedName": "train_epoch", "kind": "function"}],
        }
    ]
    [rule_at] = result["relatedLocations"]
    assert rule_at["message"]["text"] == "the rule checks.gradients_are_cleared"
    assert rule_at["physicalLocation"]["artifactLocation"] == {"uri": "checks.tspec"}
    assert rule_at["physicalLocation"]["region"]["startLine"] == 4
    assert result["partialFingerprints"] == sarif_of(a_run())["results"][0]["partialFingerprints"]


def test_code_in_no_file_leaves_a_finding_at_its_rule() -> None:
    """As that of `python -c`."""
    made = a_script(Location("<string>", 3, "<module>"))
    [result] = sarif_of(made)["results"]
    [place] = result["locations"]
    assert place["physicalLocation"]["artifactLocation"] == {"uri": "checks.tspec"}
    assert written(made, "github").startswith("::warning file=checks.tspec,line=4,")
    assert "\n  at <string>:3\n" in written(made, "text")


def test_sarif_of_two_commands_is_told_apart() -> None:
    assert sarif_of(a_run())["automationDetails"] == {"id": "tspec/check/"}
    assert sarif_of(a_spec())["automationDetails"] == {"id": "tspec/lint/"}


def test_sarif_carries_the_page_of_a_code() -> None:
    run = sarif_of(a_spec())
    [result] = run["results"]
    [described] = run["tool"]["driver"]["rules"]
    assert described["id"] == result["ruleId"] == "TS0120" or described["id"].startswith("TS01")
    assert "```tspec good" in described["help"]["markdown"]
    assert "did you mean `optimizer.step`?" in result["message"]["text"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 8


def junit_of(scene: Results) -> JUnitXml:
    return JUnitXml.fromroot(JUnitXml.fromstring(written(scene, "junit").encode())._elem)


def test_junit_has_a_suite_for_each_file_and_a_case_for_each_rule() -> None:
    xml = junit_of(a_run())
    assert [suite.name for suite in xml] == ["checks.tspec", "tspec"]
    rules, faults = xml
    assert (rules.tests, rules.failures, rules.skipped, rules.errors) == (5, 2, 2, 0)
    assert (faults.tests, faults.errors) == (1, 1)
    cases = {case.name: case for case in rules}
    assert cases["held_rule"].is_passed
    [failure] = cases["gradients_are_cleared"].result
    assert failure.message == "no call of `optimizer.zero_grad` in step 2"
    assert "step 2, rank 0" in failure.text
    [skipped] = cases["vacuous_rule"].result
    assert skipped.message.startswith("vacuous: ") and skipped.message.endswith(": no group dp")
    [skipped] = cases["blind_rule"].result
    assert skipped.message.startswith("blind: ")
    assert cases["held_rule"].classname == "checks"
    assert xml.tests == 6


def test_junit_holds_what_is_found_without_cases() -> None:
    [suite] = junit_of(a_spec())
    [case] = suite
    [failure] = case.result
    assert failure.type == "error"
    assert "8 |   before optimizer.stepp" in failure.text


@each_scene
def test_junit_is_read_by_a_parser(scene: Callable[[], Results], tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(written(scene(), "junit"), encoding="utf-8")
    read = JUnitXml.fromfile(str(path))
    assert read.tests == sum(len(list(suite)) for suite in read)


def test_a_case_of_its_own_state_is_kept() -> None:
    results = Results((), (Case("t.off", "t.tspec", "skipped", "off by tspec.toml:7"),))
    [suite] = junit_of(results)
    [case] = suite
    assert case.result[0].message == "off by tspec.toml:7"


def unescaped(text: str) -> str:
    """As GitHub's runner reads a message."""
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def test_github_commands_are_escaped() -> None:
    first, second = written(a_strange_one(), "github").splitlines()
    head, _, message = first.removeprefix("::").partition("::")
    level, _, properties = head.partition(" ")
    assert level == "warning"
    read = {
        key: unescaped(value.replace("%3A", ":").replace("%2C", ","))
        for key, value in (each.split("=", 1) for each in properties.split(","))
    }
    assert read == {
        "file": "odd, name: 100%.tspec",
        "line": "3",
        "endLine": "4",
        "title": "TS0110",
    }
    assert unescaped(message) == "first: 100%\nsecond, \\x1b[1m <&>"
    assert second == "::notice file=/elsewhere/a b.tspec,title=no.such.rule::of a whole file"


def test_github_shows_the_place_in_a_run() -> None:
    lines = written(a_run(), "github").splitlines()
    assert lines[0].startswith(
        "::warning file=checks.tspec,line=4,endLine=4,col=11,endColumn=32,"
        "title=checks.gradients_are_cleared::no call of `optimizer.zero_grad` in step 2%0A"
        "step 2, rank 0%0A"
    )
    assert lines[1].startswith("::warning file=checks.tspec,")
    assert lines[-1] == "::error title=tspec failed::internal error at forward"


def test_github_annotates_the_line_of_the_script() -> None:
    [line] = written(a_script(), "github").splitlines()
    assert line.startswith(
        "::warning file=jobs/train.py,line=41,endLine=41,title=checks.gradients_are_cleared::"
        "no call of `optimizer.zero_grad` in step 2%0Astep 2, rank 0%0A"
        "at jobs/train.py:41 in train_epoch: opt.step()%0Athe rule: checks.tspec:4%0A"
    )


def test_text_junit_and_json_say_the_line_of_the_script() -> None:
    at = "at jobs/train.py:41 in train_epoch: opt.step()"
    assert f"\n  {at}\n" in written(a_script(), "text")
    [suite] = junit_of(a_script())
    [failure] = next(case for case in suite if case.name == "gradients_are_cleared").result
    assert f"step 2, rank 0\n{at}\n" in failure.text
    [found] = json.loads(written(a_script(), "json"))
    assert found["location"] == asdict(AT)
    assert json.loads(written(a_run(), "json"))[0]["location"] is None


@each_scene
@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_the_same_every_time(name: str, scene: Callable[[], Results]) -> None:
    assert written(scene(), name) == written(scene(), name)


def test_text_shows_the_excerpt_of_a_diagnostic() -> None:
    text = written(a_spec(), "text")
    assert "8 |   before optimizer.stepp" in text
    assert io.StringIO(text).readline().startswith("error[TS01")


def test_a_fingerprint_survives_other_steps_and_lines() -> None:
    [first], [later] = a_run().results, a_run(step=40).results
    assert first.fingerprint == later.fingerprint
    assert first.consequences[0].fingerprint == later.consequences[0].fingerprint
    assert first.fingerprint != first.consequences[0].fingerprint
    [before] = a_spec().results
    [moved] = a_spec(WRONG.replace("module example\n", "module example\n\n// Moved.\n")).results
    assert before.line != moved.line
    assert before.fingerprint == moved.fingerprint


def test_a_finding_alone_is_the_same_as_in_its_report() -> None:
    found = report(ALL, verdicts(decided(CLEARED, [2, 3])))
    assert (from_finding(found.findings[0], ALL),) == from_report(found, ALL).results


def test_a_file_that_is_not_there_has_no_line() -> None:
    diagnostic = Diagnostic("TS0103", "there is no file", Span(0, 0), Source("nowhere.tspec", ""))
    assert from_diagnostic(diagnostic).region == Region("nowhere.tspec")


def test_json_has_all_that_a_finding_has() -> None:
    found = report(ALL, verdicts(decided(CLEARED, [2]), decided(SMALL, [9], subject="fc.weight")))
    [told] = json.loads(written(from_report(found, ALL), "json"))
    [finding] = json.loads(json.dumps([asdict(each) for each in found.findings]))
    [inner], [told_inner] = finding.pop("consequences"), told["consequences"]
    assert all(told[key] == value for key, value in finding.items())
    assert all(told_inner[key] == value for key, value in inner.items())


names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12
)
regions = st.builds(
    lambda file, line, column, message: Region(
        file, line, column, line, column + 1 if column else 0, message
    ),
    names,
    st.integers(0, 99),
    st.integers(0, 99),
    names,
).map(lambda r: r if r.line else Region(r.file, message=r.message))
single = st.builds(
    Result,
    names,
    names,
    regions,
    st.sampled_from(["error", "warning", "draft"]),
    explanation=names,
    help=names,
    properties=st.dictionaries(names, names | st.integers(0, 9), max_size=2),
    fingerprint=names,
    related=st.lists(regions, max_size=1).map(tuple),
)
results = st.builds(
    lambda first, inner, faults: Results(
        tuple(replace(each, consequences=tuple(inner)) for each in first), (), tuple(faults)
    ),
    st.lists(single, max_size=2),
    st.lists(single, max_size=1),
    st.lists(names, max_size=1),
)
VALIDATOR = jsonschema.Draft7Validator(schema(), format_checker=jsonschema.FormatChecker())


@settings(deadline=None)
@given(results)
def test_whatever_a_finding_says_each_format_can_hold_it(found: Results) -> None:
    VALIDATOR.validate(json.loads(written(found, "sarif")))
    JUnitXml.fromstring(written(found, "junit").encode())
    lines = written(found, "github").split("\n")
    assert len(lines) - 1 == len(found.flat()) + len(found.faults)
    assert all(line.startswith("::") for line in lines[:-1])
    assert len(json.loads(written(found, "json"))) == len(found.results)
    written(found, "text")


def test_a_rule_with_backticks_stays_within_its_fence() -> None:
    rule = "// ```\n  // # forged\n  each step\n  expect loss < 1\n"
    text = f"edition 2026\n\nmodule a\n\nuse std.torch\n\ninvariant b {{\n  {rule}}}\n"
    found = load_text(text).program
    assert found is not None
    markdown = about(found.rules[0]).help
    blocks = MarkdownIt("commonmark").parse(markdown)
    assert [block.type for block in blocks] == ["fence"]
    assert "# forged" in blocks[0].content


def test_a_page_shows_the_step_and_ranks_of_findings_and_of_what_follows() -> None:
    page = written(a_run(), "html")
    assert '<p class="place">step 2, rank 0<br>checks.tspec:' in page
    own = {"step": 3, "rank": 1, "ranks": [1, 2], "subject": "w"}
    after = Result("r", "later", Region("f.tspec"), properties=own)
    cause = Result("r", "first", Region("f.tspec", 3), properties={"step": 1, "subject": "v"})
    page = written(Results((replace(cause, consequences=(after,)),)), "html")
    assert '<p class="place">step 1: v<br>f.tspec:3</p>' in page
    assert 'later <span class="place">(step 3, ranks 1, 2: w)</span>' in page


def test_a_page_lists_rules_without_findings_by_their_outcome() -> None:
    found = Result("t.bad", "wrong", Region("t.tspec", 3), properties={"step": 1}, help="the loop")
    states = {"bad": "failed", "good": "passed", "right": "passed", "off": "skipped"}
    cases = tuple(
        Case(f"t.{name}", "t.tspec", state, "off by a.toml:7" * (name == "off"))
        for name, state in states.items()
    )
    page = written(Results((found,), cases, notes=("some steps <only>",)), "html")
    assert re.findall(r"<summary>(.*?)</summary>", page) == [
        "2 passed",
        "1 skipped, off by a.toml:7",
    ]
    assert re.findall(r"<li><code>(.*?)</code></li>", page) == ["t.good", "t.right", "t.off"]
    assert page.count("t.bad") == 1
    assert '<span class="place">look at:</span> the loop' in page
    assert "note: some steps &lt;only&gt;" in page


def test_a_page_needs_no_other_file_and_draws_each_value() -> None:
    curves = (
        Curve("the candidate", (1.0, 1e6, None), frozenset((1,))),
        Curve("tolerated", (3.0, 3.0, 3.0), role="limit"),
        Curve("alone", (0.0, 2.0, inf), frozenset((2,)), "others"),
    )
    figure = Figure("Activations <all>", "error", ("a", "b", "c"), curves)
    page = written(
        Results((Result("r", "a < b", Region("f.tspec", 3)),), figures=(figure,)), "html"
    )
    assert "a &lt; b" in page and "f.tspec:3" in page and "Activations &lt;all&gt;" in page
    assert not re.search(r"(src|href)=|@import|url\(", page)
    root = ElementTree.fromstring(re.search(r"<svg.*?</svg>", page, re.DOTALL)[0])
    drawn = [(each.get("class"), float(each.get("cy"))) for each in root.findall("circle")]
    assert [kind for kind, _ in drawn] == [
        "values",
        "values marked",
        "others",
        "others",
        "others marked",
    ]
    low, high = drawn[0][1], drawn[1][1]
    assert low == drawn[2][1]  # nothing stands at the lower end of the scale, as 1 does here
    assert high == drawn[4][1] < drawn[3][1] < low  # infinity stands at the upper end
    assert root.find("polyline").get("points").count(",") == 5  # and both ends


@pytest.mark.parametrize(
    ("others", "named", "number", "radius"),
    [((None, None), "b", 2, 3.5), ((9.0, 99.0), "b", 2, 3.5), ((99.0, 9.0), "a", 100, 2.2)],
    ids=["first wrong", "furthest alone", "many"],
)
def test_a_figure_names_what_is_wrong_by_itself_or_first(
    others: tuple[float | None, ...], named: str, number: int, radius: float
) -> None:
    marked = frozenset(i for i, value in enumerate(others) if value is not None)
    places = ("a", "b", *(f"c{each}" for each in range(number - 2)))
    none = (None,) * (number - 2)
    curves = (
        Curve("run", (1.0, 9.0, *none), frozenset((1,))),
        Curve("alone", (*others, *none), marked, "others"),
    )
    drawn = drawing(Figure("errors", "error", places, curves))
    assert drawn.named is not None
    assert (drawn.named.says[0], drawn.radius) == (named, radius)
    page = write(Results((), figures=(drawn.figure,)))
    assert page.count('class="leader"') == 1
    assert f">{named}</text>" in page


def test_a_line_without_a_function_says_no_function() -> None:
    assert Location("train.py", 4, "").words == "train.py:4"
    assert Location("train.py", 4, "main").words == "train.py:4 in main"


@pytest.mark.parametrize("x", [60.0, WIDTH / 2 + 1, 940.0])
def test_the_label_of_a_dot_stays_within_the_plot(x: float) -> None:
    """Its beginning and its end say what it is; short ones are left as they are."""
    name = f"output_grads model.{'layers.' * 30}12.fc1, step 1, micro-batch 1"
    label = label_of(Dot(x, 0.0, f"{name}: the candidate 3", marked=True, beyond=False))
    assert len(label) < len(name) and len(label) * 6.6 <= max(x, WIDTH - x)
    assert label.startswith("output_grads model.") and label.endswith(
        "12.fc1, step 1, micro-batch 1"
    )
    short = "params fc.bias, step 1"
    assert label_of(Dot(x, 0.0, f"{short}: the candidate 3", marked=True, beyond=False)) == short
