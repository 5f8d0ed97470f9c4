"""Tests of recordings, and coverage over them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.recordings import record_loop
from tspec.cli.app import app

RULES = """edition 2026

module rules

use std.torch

invariant gradients_are_cleared {
  each step
  when step > 1
  expect contains optimizer.zero_grad
  else warn
}
"""
TESTS = """
test "a loop that forgets" {
  trace "runs/forgets"
  violates gradients_are_cleared at step 2..4 on rank 0
}

test "a loop that clears" {
  trace "runs/clears"
  passes gradients_are_cleared
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Rules, and two recordings beside them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs" / "runs").mkdir(parents=True)
    (tmp_path / "specs" / "rules.tspec").write_text(RULES)
    record_loop(tmp_path / "specs" / "runs" / "forgets", clears=False)
    record_loop(tmp_path / "specs" / "runs" / "clears")
    return tmp_path


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*words, "--no-config"], catch_exceptions=False)
    return done.exit_code, done.stdout


def test_a_recording_is_found_beside_the_test(folder: Path) -> None:
    (folder / "specs" / "rules.test.tspec").write_text(
        RULES.split("\ninvariant")[0].replace("module rules", "module rules.test")
        + "use rules\n"
        + TESTS
    )
    assert run("test", "specs", "--executors", "all") == (0, "2 tests passed\n")


def test_recordings_count_for_coverage_without_any_test(folder: Path) -> None:
    traces = [f"--trace=specs/runs/{name}" for name in ("forgets", "clears")]
    status, said = run("test", "specs", traces[1], "--fail-under", "80")
    assert status == 1 and "TS0612 unproven: never violated" in said
    status, said = run("test", "specs", *traces, "--fail-under", "100", "--output-format", "json")
    (rule,) = json.loads(said)["coverage"]["rules"]
    assert status == 0
    assert (rule["holds"], rule["violated"], rule["idle"]) == (3, 3, 2)
    assert rule["gaps"] == []


def test_coverage_is_written_to_files(folder: Path) -> None:
    trace = "--trace=specs/runs/forgets"
    run("test", "specs", trace, "--coverage-report", "out/coverage.info")
    run("test", "specs", trace, "--coverage-report", "out/coverage.json")
    lcov = (folder / "out" / "coverage.info").read_text().splitlines()
    assert "FNDA:3,rules.gradients_are_cleared" in lcov and lcov[-1] == "end_of_record"
    assert "BRDA:9,1,0,3" in lcov and "BRDA:9,1,1,1" in lcov
    assert json.loads((folder / "out" / "coverage.json").read_text())["rules"][0]["violated"] == 3


def test_the_configuration_says_where_tests_are_and_how_much_is_enough(folder: Path) -> None:
    (folder / "specs" / "rules.tspec").write_text(
        RULES + TESTS.split("\ntest")[2].join(["\ntest", ""])
    )
    (folder / "tspec.toml").write_text('[test]\npaths = ["specs"]\nfail-under = 100\n')
    done = CliRunner().invoke(app, ["test", "--coverage"], catch_exceptions=False)
    assert done.exit_code == 1
    assert "1 test passed" in done.stdout and "never violated" in done.stdout


def test_a_name_is_the_rule_of_ones_own_file_first(folder: Path) -> None:
    (folder / "own.tspec").write_text(
        RULES.replace("module rules", "module own").replace(
            "use std.torch", "use std.torch\nuse std.hygiene"
        )
        + TESTS.split("\ntest")[1].replace('trace "runs', 'trace "specs/runs').join(["\ntest", ""])
    )
    assert run("test", "own.tspec") == (0, "1 test passed\n")
