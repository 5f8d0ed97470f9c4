"""`tspec check` and `tspec lint` with formats, files, baselines and a project's configuration."""

import json
from pathlib import Path

import jsonschema
import pytest
from junitparser import JUnitXml, Properties
from typer.testing import CliRunner, Result

from tests.cli.recordings import CLEARED, record_loop
from tests.report.schemas import schema
from tspec.cli.app import app

RULES = (
    """edition 2026

module pack version "1.2"

use std.torch

"""
    + CLEARED
    + """
/// Something updates the parameters in every step.
invariant steps_update {
  each step
  expect contains optimizer.step
  else warn
}
"""
)
MINE = """edition 2026

module mine

use pack with steps_update: off
"""


def tspec(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose recording clears no gradients; its folder is the working folder."""
    record_loop(tmp_path / "faulty", clears=False)
    (tmp_path / "pack.tspec").write_text(RULES)
    (tmp_path / "mine.tspec").write_text(MINE)
    (tmp_path / "tspec.toml").write_text('specs = ["mine.tspec"]\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_json_keeps_its_fields_and_says_the_pack(project: Path) -> None:
    result = tspec("check", "--trace", "faulty", "--output-format", "json")
    assert result.exit_code == 1, result.output
    [finding] = json.loads(result.stdout)
    assert {"rule", "file", "line", "step", "rank", "subject", "message"} <= set(finding)
    assert (finding["rule"], finding["line"]) == ("pack.gradients_are_cleared", 8)
    assert (finding["pack"], finding["version"]) == ("pack", "1.2")
    assert "1 finding" in result.stderr


def test_sarif_of_a_run_is_valid_and_says_the_pack(project: Path) -> None:
    result = tspec("check", "--trace", "faulty", "--output-format", "sarif")
    assert result.exit_code == 1
    log = json.loads(result.stdout)
    jsonschema.Draft7Validator(schema()).validate(log)
    [run] = log["runs"]
    described = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert described["pack.steps_update"]["properties"] == {"pack": "pack", "version": "1.2"}
    help_ = described["pack.gradients_are_cleared"]["help"]["markdown"]
    assert help_.startswith("Gradients left over") and "expect contains" in help_
    [found] = run["results"]
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "pack.tspec"
    assert place["region"]["startLine"] == 8


def test_junit_of_a_run_says_what_is_off(project: Path) -> None:
    result = tspec("check", "--trace", "faulty", "--report", "out/report.xml")
    assert "warning: pack.gradients_are_cleared" in result.stdout
    assert "1 off by mine.tspec:5:\n  steps_update" in result.stdout
    [suite] = JUnitXml.fromfile(str(project / "out" / "report.xml"))
    cases = {case.name: case for case in suite}
    [skipped] = cases["steps_update"].result
    assert skipped.message == "off by mine.tspec:5"
    properties = {
        each.name: each.value for each in cases["gradients_are_cleared"].child(Properties)
    }
    assert properties == {"pack": "pack", "version": "1.2"}


@pytest.mark.parametrize(
    ("name", "option", "start"),
    [
        ("a.sarif", (), '{\n  "$schema"'),
        ("a.xml", (), "<?xml"),
        ("a.txt", (), "pack.tspec:8:11: warning[pack.gradients_are_cleared]: no call"),
        ("a.json", (), "[\n  {"),
        ("a", (), "[\n  {"),
        ("a.out", ("--report-format", "github"), "::warning file=pack.tspec,line=8,"),
        ("a.json", ("--report-format", "junit"), "<?xml"),
    ],
)
def test_a_file_is_written_as_it_is_called(
    name: str, option: tuple[str, ...], start: str, project: Path
) -> None:
    tspec("check", "--trace", "faulty", "--report", name, *option)
    assert (project / name).read_text().startswith(start)


def test_an_ending_of_no_format_is_refused_before_the_command_begins(project: Path) -> None:
    result = tspec("check", "--trace", "faulty", "--report", "a.foo")
    assert result.exit_code == 2
    assert (
        "Invalid value for --report: no format has the ending .foo: name the file" in result.stderr
    )
    assert "with one of .json, .sarif, .xml, .txt, .html, or say --report-format" in result.stderr
    assert not (project / "a.foo").exists()


def test_the_configuration_sets_rules_format_and_baseline(project: Path) -> None:
    (project / "tspec.toml").write_text(
        'specs = ["mine.tspec"]\noutput-format = "github"\nbaseline = "accepted.json"\n\n'
        '[rules]\n"pack.gradients_are_cleared" = "stop"\n'
    )
    result = tspec("check", "--trace", "faulty")
    assert result.exit_code == 2
    assert "there is no baseline accepted.json" in result.stderr
    result = tspec("check", "--trace", "faulty", "--update-baseline", "--output-format", "text")
    assert (result.exit_code, "nothing new found" in result.stdout) == (0, True)
    [entry] = json.loads((project / "accepted.json").read_text())["findings"]
    assert (entry["command"], entry["file"], entry["rule"], entry["subject"]) == (
        "check",
        "pack.tspec",
        "pack.gradients_are_cleared",
        "",
    )
    (project / "accepted.json").write_text('{"version": 1, "findings": []}')
    result = tspec("check", "--trace", "faulty")
    assert result.exit_code == 1
    assert result.stdout.startswith("::error file=pack.tspec,line=8,")
    result = tspec("check", "--trace", "faulty", "--output-format", "text")
    assert "action: stop (set by tspec.toml:6)" in result.stdout


def test_a_baseline_hides_and_tells_what_is_stale(project: Path) -> None:
    first = tspec("check", "--trace", "faulty", "--baseline", "b.json", "--update-baseline")
    assert first.exit_code == 0
    assert "1 finding hidden, which b.json accepts" in first.stderr
    moved = RULES.replace("/// Gradients", "// Moved.\n\n/// Gradients")
    (project / "pack.tspec").write_text(moved)
    again = tspec("check", "--trace", "faulty", "--baseline", "b.json", "--report", "a.sarif")
    assert again.exit_code == 0
    assert json.loads((project / "a.sarif").read_text())["runs"][0]["results"] == []
    record_loop(project / "clean")
    clean = tspec("check", "--trace", "clean", "--baseline", "b.json")
    assert clean.exit_code == 0
    assert "1 entry is stale in b.json" in clean.stderr
    assert "  pack.tspec: pack.gradients_are_cleared" in clean.stderr


def test_the_command_line_sets_rules(project: Path) -> None:
    rule = "pack.gradients_are_cleared"
    result = tspec("check", "--trace", "faulty", "--rule", f"{rule}=off", "--rule", "pack.*=stop")
    assert result.exit_code == 0, result.output
    assert "1 off by the command line:\n  gradients_are_cleared" in result.stdout
    for wrong, said in (
        (f"{rule}=of", "did you mean `off`"),
        (rule, "is no NAME=ACTION"),
        ("pack.gradients=off", "`pack` has no rule `gradients`"),
    ):
        result = tspec("check", "--trace", "faulty", "--rule", wrong)
        assert result.exit_code == 2
        assert said in " ".join(result.stderr.split())
    twice = tspec("check", "--trace", "faulty", "--rule", "a.b=off", "--rule", "a.b=off")
    assert "is set twice" in twice.stderr


def test_a_rule_of_the_configuration_that_is_nowhere_is_shown_there(project: Path) -> None:
    (project / "tspec.toml").write_text(
        'specs = ["mine.tspec"]\n\n[rules]\npack.gradients_are_clear = "off"\n'
    )
    result = tspec("check", "--trace", "faulty")
    assert result.exit_code == 2
    assert "error[TS0194]: `pack` has no rule `gradients_are_clear`" in result.stderr
    assert " --> tspec.toml:4:1" in result.stderr
    assert "4 | pack.gradients_are_clear = " in result.stderr
    assert "did you mean `gradients_are_cleared`?" in result.stderr


def test_specs_of_the_configuration_that_are_not_there_are_shown_there(project: Path) -> None:
    (project / "tspec.toml").write_text('specs = [\n  "mine.tspec",\n  "std.helth",\n]\n')
    result = tspec("check", "--trace", "faulty")
    assert result.exit_code == 2
    assert "error[TS0103]: there is no file, folder, module or pack `std.helth`" in result.stderr
    assert " --> tspec.toml:3:3\n" in result.stderr
    assert '3 |   "std.helth",' in result.stderr


def test_wrong_specs_are_told_in_the_format_that_was_asked_for(project: Path) -> None:
    (project / "pack.tspec").write_text(RULES.replace("zero_grad", "zero_grads"))
    plain = tspec("check", "--trace", "faulty", "--report", "a.json")
    assert (plain.exit_code, plain.stdout) == (2, "")
    assert "error[TS01" in plain.stderr
    [told] = json.loads((project / "a.json").read_text())
    assert (told["file"], told["line"], told["severity"]) == (
        str(project / "pack.tspec"),
        11,
        "error",
    )
    github = tspec("check", "--trace", "faulty", "--output-format", "github")
    assert github.exit_code == 2
    assert github.stdout.startswith("::error file=pack.tspec,line=11,")
    for command in (("check", "--trace", "faulty"), ("lint",), ("test", "mine.tspec")):
        sarif = tspec(*command, "--output-format", "sarif")
        assert sarif.exit_code == 2
        log = json.loads(sarif.stdout)
        jsonschema.Draft7Validator(schema()).validate(log)
        assert len(log["runs"][0]["results"]) == 1


def test_without_specs_and_configuration_the_call_is_wrong(project: Path) -> None:
    result = tspec("check", "--trace", "faulty", "--no-config")
    assert result.exit_code == 2
    assert "set `specs` in the configuration" in " ".join(result.stderr.split())
    both = tspec("check", "--trace", "faulty", "--no-config", "--config", "tspec.toml")
    assert both.exit_code == 2
    other = project / "other.toml"
    other.write_text('specs = ["pack.tspec"]\n')
    assert tspec("check", "--trace", "faulty", "--config", other).exit_code == 1
    (project / "pyproject.toml").write_text("[tool.tpsec]\nspecs = []\n")
    empty = tspec("check", "--trace", "faulty", "--config", "pyproject.toml")
    assert empty.exit_code == 2
    assert "has no table [tool.tspec]" in " ".join(empty.stderr.split())


def test_lint_keeps_to_the_configuration_and_the_baseline(project: Path) -> None:
    (project / "pack.tspec").write_text(RULES.replace("> 1", "> 1 and step < 1"))
    (project / "tspec.toml").write_text('specs = ["pack.tspec"]\n')
    found = tspec("lint", "--output-format", "json")
    assert found.exit_code == 1, found.output
    codes = {each["rule"] for each in json.loads(found.stdout)}
    listed = json.dumps(sorted(codes))
    for section in (f"ignore = {listed}", f'per-file-ignores."pack*" = {listed}'):
        (project / "tspec.toml").write_text(f'specs = ["pack.tspec"]\n\n[lint]\n{section}\n')
        assert tspec("lint").exit_code == 0
    (project / "tspec.toml").write_text('specs = ["pack.tspec"]\nbaseline = "b.json"\n')
    assert tspec("lint", "--update-baseline").exit_code == 0
    assert tspec("lint").exit_code == 0
    (project / "pack.tspec").write_text(RULES)
    suites = JUnitXml.fromstring(tspec("lint", "--output-format", "junit").stdout.encode())
    assert [(case.name, case.is_passed) for suite in suites for case in suite] == [("lint", True)]
    mended = tspec("lint")
    assert "stale in b.json" in mended.stderr
    log = json.loads(tspec("lint", "--output-format", "sarif").stdout)
    jsonschema.Draft7Validator(schema()).validate(log)
