"""Recordings that end early: every format says which, why, and what that leaves undecided."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from junitparser import JUnitXml
from typer.testing import CliRunner, Result

from tests.cli.recordings import CLEARED, record_ranks
from tests.report.schemas import schema
from tspec.cli.app import app

CASES = Path(__file__).parents[1] / "cases" / "recordings"
WIDTH = 80
RULES = (
    """edition 2026

module checks

use std.torch

"""
    + CLEARED
    + """
/// Ranks begin each step with the same weights.
invariant weights_are_the_same {
  for p in parameters
  across world
  each step
  expect same(p.data)
  else warn
}
"""
)
RECORDINGS: dict[str, dict[int, str]] = {
    "whole": {},
    "killed": {1: "killed"},
    "torn": {1: "torn"},
    "stopped": {1: "stopped"},
    "damaged": {1: "damaged"},
    "empty": {1: "empty"},
    "no_batch": {1: "no batch"},
    "missing": {1: "missing"},
    "many": {**dict.fromkeys(range(1, 11), "killed"), 12: "missing", 13: "missing", 15: "empty"},
}


def tspec(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with rules and a recording for each way to end."""
    for name, ends in RECORDINGS.items():
        record_ranks(tmp_path / name, ends=ends, world=16 if name == "many" else 2)
    (tmp_path / "checks.tspec").write_text(RULES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    return tmp_path


@pytest.mark.parametrize("path", sorted(CASES.glob("*.case")), ids=lambda path: path.stem)
def test_case(
    path: Path,
    folder: Path,
    case_input: Callable[[Path], str],
    check_case: Callable[[Path, dict[str, str]], None],
) -> None:
    said = {}
    for command in case_input(path).splitlines():
        words = shlex.split(command.removeprefix("$ tspec "))
        done = tspec(*words)
        # How large a batch is depends on the version of Arrow.
        shown = re.sub(r"(?<=byte )[\d,]+|\d[\d,]*(?= bytes)", "N", done.output)
        said[f"{shlex.join(words)} ({done.exit_code})"] = shown
        if not {"json", "github", "junit"} & set(words):
            assert [line for line in done.output.splitlines() if len(line) > WIDTH] == []
    check_case(path, said)


@pytest.mark.parametrize("name", [name for name in RECORDINGS if name != "whole"])
def test_no_format_is_silent(name: str, folder: Path) -> None:
    check = ("check", "checks.tspec", "--trace", name)
    for kind in ("text", "json", "sarif", "junit", "github"):
        told = tspec(*check, "--rule", "checks.*=off", "--rule", "checks.gradients_are_cleared=warn",
                     "--report", "out", "--report-format", kind)  # fmt: skip
        assert "warning: the recording is incomplete\n  rank" in told.stdout
        assert "TS0700" in (folder / "out").read_text()


def test_a_whole_recording_is_not_told_of(folder: Path) -> None:
    done = tspec("check", "checks.tspec", "--trace", "whole", "--require-complete")
    assert done.exit_code == 1
    assert "incomplete" not in done.output


def test_json_says_rank_step_cause_and_undecided_instances_behind_the_findings(
    folder: Path,
) -> None:
    done = tspec("check", "checks.tspec", "--trace", "killed", "--output-format", "json")
    *findings, ends = json.loads(done.stdout)
    assert [each["rule"] for each in findings] == ["checks.gradients_are_cleared"]
    assert (ends["rule"], ends["severity"], ends["file"]) == (
        "TS0700",
        "warning",
        "killed/rank-1.arrow",
    )
    assert (ends["rank"], ends["step"], ends["cause"]) == (1, 3, "cut off")
    assert ends["undecided"] == {
        "checks.gradients_are_cleared": 1,
        "checks.weights_are_the_same": 2,
    }


def test_sarif_notifies_and_is_valid(folder: Path) -> None:
    for option, level in (("--allow-incomplete", "warning"), ("--require-complete", "error")):
        command = ("check", "checks.tspec", "--trace", "missing", option)
        log = json.loads(tspec(*command, "--output-format", "sarif").stdout)
        jsonschema.Draft7Validator(schema()).validate(log)
        [run] = log["runs"]
        [invocation] = run["invocations"]
        assert invocation["executionSuccessful"] is False
        [told] = invocation["toolExecutionNotifications"]
        assert (told["level"], told["descriptor"]["id"]) == (level, "TS0700")
        assert told["message"]["text"].startswith("rank 1: no recording")
        [described] = run["tool"]["driver"]["notifications"]
        assert "cut off" in described["help"]["markdown"]
        assert "TS0700" not in {each["ruleId"] for each in run["results"]}


def test_junit_skips_what_is_allowed_and_fails_what_is_required(folder: Path) -> None:
    for option, tag in (("--allow-incomplete", "Skipped"), ("--require-complete", "Error")):
        command = ("check", "checks.tspec", "--trace", "killed", option)
        xml = JUnitXml.fromstring(tspec(*command, "--output-format", "junit").stdout.encode())
        [suite] = [each for each in xml if each.name == "killed/rank-1.arrow"]
        [case] = suite
        [outcome] = case.result
        assert (case.name, type(outcome).__name__) == ("rank 1 recorded to the end", tag)
        assert "TS0700: rank 1: recording ends in step 3" in outcome.message


def test_a_baseline_does_not_hide_it(folder: Path) -> None:
    check = ("check", "checks.tspec", "--trace", "killed", "--baseline", "b.json")
    done = tspec(*check, "--update-baseline")
    assert (done.exit_code, "nothing new found in what was recorded" in done.stdout) == (0, True)
    assert "TS0700" not in (folder / "b.json").read_text()
    assert "the recording is incomplete" in done.stdout


def test_the_configuration_can_require_it(folder: Path) -> None:
    (folder / "tspec.toml").write_text("[check]\nrequire-complete = true\n")
    check = ("check", "checks.tspec", "--trace", "killed")
    assert tspec(*check).exit_code == 2
    assert tspec(*check, "--allow-incomplete").exit_code == 1
    (folder / "tspec.toml").write_text("[check]\nrequire-complete = 1\n")
    wrong = tspec(*check)
    assert wrong.exit_code == 2
    assert "`require-complete` takes true or false" in wrong.stderr
