"""`tspec check`: findings, their two forms, and the exit codes."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.cli.recordings import CLEARED, record_loop
from tspec.cli.app import app

RULES = (
    """\
edition 2026

module checks

use std.torch

"""
    + CLEARED
    + """
draft invariant steps_update {
  each step
  expect contains scheduler.step
}
"""
)


def tspec(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "checks.tspec"
    path.write_text(RULES)
    return path


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    return record_loop(tmp_path / "clean")


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return record_loop(tmp_path / "faulty", clears=False)


def test_findings_are_printed_and_exit_with_one(rules: Path, faulty: Path) -> None:
    result = tspec("check", rules, "--trace", faulty)
    assert result.exit_code == 1, result.output
    assert "warning: checks.gradients_are_cleared" in result.stdout
    assert f"{rules}:8" in "".join(result.stdout.split())
    assert "no call of `optimizer.zero_grad` in step 2" in result.stdout
    assert "3 of 3 instances" in result.stdout


def test_drafts_are_findings_unless_left_out(rules: Path, clean: Path) -> None:
    assert tspec("check", rules, "--trace", clean).exit_code == 1
    result = tspec("check", rules, "--trace", clean, "--accepted-only")
    assert result.exit_code == 0
    assert "nothing found" in result.stdout


def test_json_goes_to_standard_output_and_counts_to_standard_error(
    rules: Path, faulty: Path
) -> None:
    result = tspec("check", rules, "--trace", faulty, "--accepted-only", "--output-format", "json")
    [finding] = json.loads(result.stdout)
    assert finding["rule"] == "checks.gradients_are_cleared"
    assert (finding["file"], finding["line"]) == (str(rules), 8)
    assert (finding["step"], finding["rank"], finding["subject"]) == (2, 0, "")
    assert "2 rules:" in result.stderr


def test_the_report_file_holds_the_findings(rules: Path, faulty: Path, tmp_path: Path) -> None:
    report = tmp_path / "deep" / "report.json"
    assert tspec("check", rules, "--trace", faulty, "--report", report).exit_code == 1
    assert {finding["rule"] for finding in json.loads(report.read_text())} == {
        "checks.gradients_are_cleared",
        "checks.steps_update",
    }


def test_nothing_found_is_an_empty_report(rules: Path, clean: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    result = tspec("check", rules, "--trace", clean, "--accepted-only", "--report", report)
    assert result.exit_code == 0
    assert json.loads(report.read_text()) == []


def test_a_bad_spec_is_told_and_exits_with_two(rules: Path, clean: Path) -> None:
    rules.write_text(RULES.replace("optimizer.zero_grad", "optimizer.zero_gard"))
    result = tspec("check", rules, "--trace", clean)
    assert result.exit_code == 2
    assert "did you mean `optimizer.zero_grad`?" in result.stderr
    assert "tspec explain TS" in result.stderr


def test_a_spec_that_is_not_there_exits_with_two(clean: Path) -> None:
    result = tspec("check", "std.hygeine", "--trace", clean)
    assert result.exit_code == 2
    assert "std.hygiene" in result.stderr


def test_a_missing_trace_exits_with_two(rules: Path, tmp_path: Path) -> None:
    assert tspec("check", rules, "--trace", tmp_path / "nowhere").exit_code == 2
    assert tspec("check", rules).exit_code == 2
