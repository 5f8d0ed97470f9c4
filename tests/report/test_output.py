"""The words and numbers of a report, in the terminal and as JSON."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from tests.report import scenes
from tests.report.scenes import BEFORE_UPDATE, decided, program, rule, verdicts
from tests.testing import specs
from tspec.check.verdicts import Verdicts
from tspec.report.build import report
from tspec.report.findings import Report
from tspec.report.formats import written
from tspec.report.results import from_report
from tspec.report.terminal import BRIEF, VERBOSE, Limits, print_report
from tspec.resolve import load_text
from tspec.resolve.program.failures import failure
from tspec.resolve.program.rules import Program, Rule
from tspec.values import Location, show

CLEARED = rule("gradients_are_cleared", scenes.contains("optimizer.zero_grad"))
SMALL = rule(
    "gradients_do_not_explode",
    scenes.below(),
    over="parameter",
    window=BEFORE_UPDATE,
)
QUIET = rule("quiet", scenes.contains("scheduler.step"))


def printed(of: Program, found: Verdicts, width: int = 80, limits: Limits = BRIEF) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None)
    print_report(report(of, found), of, console, limits)
    return out.getvalue()


def as_json(of: Program, found: Report) -> str:
    return written(from_report(found, of), "json")


def test_json_is_a_list_of_objects_with_the_agreed_fields() -> None:
    found = report(
        program(CLEARED, SMALL),
        verdicts(
            decided(CLEARED, [2, 3]),
            decided(SMALL, [9], subject="fc.weight", values={"norm(p.grad)": "180.5"}),
        ),
    )
    [finding] = json.loads(as_json(program(CLEARED, SMALL), found))
    assert {"rule", "file", "line", "step", "rank", "subject", "message"} <= set(finding)
    assert (finding["rule"], finding["file"], finding["line"]) == (
        "checks.gradients_are_cleared",
        "checks.tspec",
        4,
    )
    assert (finding["step"], finding["rank"], finding["violated"]) == (2, 0, 2)
    assert finding["message"] == "no call of `optimizer.zero_grad` in step 2"
    [consequence] = finding["consequences"]
    assert consequence["subject"] == "fc.weight"
    assert consequence["values"] == {"norm(p.grad)": "180.5"}
    assert consequence["severity"] == "warning"


def test_nothing_found_is_an_empty_list() -> None:
    assert (
        as_json(
            program(CLEARED),
            report(program(CLEARED), verdicts(decided(CLEARED, [2], verdict="holds"))),
        )
        == "[]\n"
    )


def test_a_finding_says_rule_place_numbers_and_what_to_look_at() -> None:
    text = printed(program(CLEARED), verdicts(decided(CLEARED, range(2, 12))))
    assert "warning: checks.gradients_are_cleared" in text
    assert "--> checks.tspec:4" in text
    assert "4 | invariant gradients_are_cleared {" in text
    assert "step 2, rank 0" in text
    assert "violated in 10 of 10 instances decided since, last at step 11" in text
    assert "look at: where the loop needs gradients_are_cleared." in text
    assert "1 finding" in text


EARLY = """edition 2026

module checks

use std.torch

invariant cleared_early {
  each step
  when CONDITION
  expect contains optimizer.zero_grad
  else warn
}
"""


@pytest.mark.parametrize(
    ("condition", "last", "ends"),
    [
        ("step <= 20", 20, True),
        ("20 >= step", 20, True),
        ("phase == train and run.step < 21", 20, True),
        ("step <= 20", 19, False),
        ("step <= 20 or phase == eval", 20, False),
        ("step >= 20", 20, False),
    ],
)
def test_the_last_step_that_a_rule_looks_at_is_no_end_of_the_fault(
    condition: str, last: int, ends: bool
) -> None:
    early = load_text(EARLY.replace("CONDITION", condition)).program
    assert early is not None
    text = printed(early, verdicts(decided(early.rules[0], range(4, last + 1))))
    [line] = [line for line in text.splitlines() if "violated in" in line]
    assert f"decided since, last at step {last}" in line
    assert ("the rule looks at no later step" in " ".join(text.split())) is ends


STOPPED = """edition 2026

module checks

use std.torch

invariant gradients_are_cleared {
  before optimizer.step
  expect contains optimizer.zero_grad
  else skip
}

invariant gradients_are_small {
  for p in parameters
  before optimizer.step
  when present(p.grad)
  expect norm(p.grad) <= 100
  else stop
}
"""


def test_what_follows_from_a_fault_and_ended_the_job_says_so() -> None:
    stopped = load_text(STOPPED).program
    assert stopped is not None
    cleared, small = stopped.rules
    found = verdicts(decided(cleared, [2, 3]), decided(small, [3], subject="fc.weight"))
    assert "    step 3  gradients_are_small  fc.weight (action: stop)\n" in printed(stopped, found)


def test_the_action_of_what_follows_is_whole_at_80_columns() -> None:
    late = STOPPED.replace("else stop", "else warn, then stop after 3 consecutive steps")
    stopped = load_text(late).program
    assert stopped is not None
    cleared, small = stopped.rules
    found = decided(small, [3, 4, 5], subject="blocks.1.attention.proj.weight")
    lines = printed(stopped, verdicts(decided(cleared, [2, 3]), found)).splitlines()
    assert max(map(len, lines)) <= 80
    [at] = [place for place, line in enumerate(lines) if "gradients_are_small" in line]
    said = " ".join(" ".join(lines[at : at + 3]).split())
    assert "weight (action: warn, then stop after 3 consecutive steps)" in said


def test_silence_is_told_from_blindness() -> None:
    blind = rule("blind_rule", scenes.contains("a"))
    vacuous = rule("vacuous_rule", scenes.contains("b"))
    text = printed(
        program(CLEARED, QUIET, blind, vacuous),
        verdicts(
            decided(CLEARED, [1, 2], verdict="holds"),
            decided(blind, [1, 2], verdict="unknown", reason="not recorded"),
            decided(vacuous, [1], verdict="idle", reason="no group dp"),
        ),
    )
    assert "nothing found" in text
    assert "4 rules: 0 violated, 1 held. 5 instances, 2 decided." in text
    assert "1 vacuous" in text
    assert "vacuous_rule (no group dp)" in text
    assert "1 blind" in text
    assert "blind_rule (not recorded)" in text
    assert "1 without an instance" in text


def test_the_reason_stands_beside_its_rule() -> None:
    rules = [rule(f"rule_{'x' * n}", scenes.contains("b")) for n in range(16, 22)]
    found = verdicts(*[decided(each, [1], verdict="idle", reason="no group dp") for each in rules])
    _, _, _, *lines = printed(program(*rules), found, limits=VERBOSE).splitlines()
    shown = [f"{each.name} (no group dp)" for each in rules]
    assert [one for line in lines for one in line.strip().rstrip(",").split(", ")] == shown
    assert len(lines) > 1 and max(map(len, lines)) <= 80


def test_a_name_that_is_wider_than_the_terminal_is_broken_before_its_reason() -> None:
    wide = rule(f"rule_{'x' * 62}", scenes.contains("b"))
    found = verdicts(decided(wide, [1], verdict="idle", reason="no group world"))
    lines = printed(program(wide), found).splitlines()
    assert lines[-2:] == [f"  {wide.name} (no group", "  world)"]


def test_no_line_is_wider_than_the_terminal() -> None:
    long: Rule = rule(
        "a_rule_with_quite_a_long_name_that_goes_on", scenes.below(), over="parameter"
    )
    found = verdicts(
        decided(CLEARED, [1, 2]),
        *[
            decided(
                long,
                [3],
                subject=f"decoder.layers.{n}.self_attention.linear_qkv.weight",
                values={"norm(p.grad)": "1.2345678901234567e+30", "norm(p.data)": "12.25"},
            )
            for n in range(12)
        ],
    )
    lines = printed(program(CLEARED, long), found).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("and 9 more" in line or "…" in line for line in lines)


def test_subjects_of_several_variables_are_told_apart() -> None:
    pairs = [decided(SMALL, [4], subject=f"optimizer.0, layers.{n}.weight") for n in range(2)]
    text = printed(program(SMALL), verdicts(*pairs))
    assert "rank 0: optimizer.0, layers.0.weight; optimizer.0, layers.1.weight" in text


def test_a_long_set_is_cut_between_names_and_counts_the_others() -> None:
    names = frozenset(f"transformer.h.{n}.attn.c_attn.weight" for n in range(10, 40))
    assert show(names) == (
        "{transformer.h.10.attn.c_attn.weight, transformer.h.11.attn.c_attn.weight and 28 more}"
    )
    assert show(frozenset({"x" * 200, "y"})) == "{2 items}"


def test_a_long_list_is_cut_between_its_items() -> None:
    names = tuple(f"decoder.layers.{n}.linear_qkv.weight" for n in range(10, 40))
    assert show(names) == (
        "[decoder.layers.10.linear_qkv.weight, decoder.layers.11.linear_qkv.weight and 28 more]"
    )
    assert show((0.5, 1.0)) == "[0.5, 1]"


KNOWN = [f'"operation_{n:02}"' for n in range(40)]
SEPARATED = ",\n      ".join(KNOWN)
LISTED = f"""invariant operations_are_known {{
  for c in calls(backward)
  expect "loss <- add" in [
      {SEPARATED},
    ]
  else warn
}}
"""


def test_of_a_long_list_in_a_rule_the_first_items_are_shown() -> None:
    of = specs.program(LISTED)
    [listed] = of.rules
    shown = f'expected "loss <- add" in [{", ".join(KNOWN[:6])} and 34 more]'
    assert failure(listed) == shown
    [brief, whole] = (
        printed(of, verdicts(decided(listed, [1], subject="#0")), limits=each)
        for each in (BRIEF, VERBOSE)
    )
    assert " ".join(brief.split()).count(shown) == 1
    assert "| … 33 more lines" in brief
    assert KNOWN[0] in brief and f"{KNOWN[-1]},\n" in brief
    assert brief.count(" | ") == 12
    assert "more lines" not in whole and all(f"{each},\n" in whole for each in KNOWN)


def test_verbose_lists_what_is_counted_otherwise() -> None:
    small = [decided(SMALL, [4], subject=f"layers.{n}.weight") for n in range(9)]
    silent = [rule(f"silent_{n}", scenes.contains("scheduler.step")) for n in range(7)]
    of = program(SMALL, *silent)
    brief, whole = (printed(of, verdicts(*small), limits=each) for each in (BRIEF, VERBOSE))
    assert "and 6 more" in brief and "and 3 more" in brief
    assert " more" not in whole
    names = [*(f"layers.{n}.weight" for n in range(9)), *(f"silent_{n}" for n in range(7))]
    assert [name for name in names if name not in whole] == []
    assert max(map(len, whole.splitlines())) <= 80


def test_a_finding_shows_its_line_of_the_script_within_the_width() -> None:
    at = Location("jobs/train.py", 41, "Trainer.fit", "self.optimizer.step(" + "closure, " * 20)
    lines = printed(program(CLEARED), verdicts(decided(CLEARED, [2], location=at))).splitlines()
    place = lines.index("  step 2, rank 0")
    assert lines[place + 1].startswith("  at jobs/train.py:41 in Trainer.fit: self.optimizer.step(")
    assert lines[place + 1].endswith("…") and len(lines[place + 1]) == 80


def test_a_fault_of_tspec_is_no_silence() -> None:
    found = report(program(CLEARED), verdicts(decided(CLEARED, [1], verdict="holds")))
    out = io.StringIO()
    console = Console(file=out, width=80, color_system=None)
    print_report(
        replace(found, faults=("internal error at forward [ranks 0, 1]",)),
        program(CLEARED),
        console,
    )
    assert "tspec failed: internal error at forward [ranks 0, 1]" in out.getvalue()
    assert "nothing found, but some of it was not looked at" in out.getvalue()
