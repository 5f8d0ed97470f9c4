"""The tests that ship: all executors agree on all of them, and they cover every rule of the essentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from tspec.resolve import load
from tspec.testing.coverage import VerdictCounts, count_tests, coverage
from tspec.testing.suite import run_all

ROOT = Path(__file__).resolve().parents[2]
ONLY_LIVE = {
    ("TS0610", f"std.{rule}")
    for rule in (
        "health.outputs_vary_between_samples",
        "hygiene.averages_lie_between",
        "hygiene.averages_keep_more_than_they_take",
        "replicas.ranks_without_updates_keep_up",
    )
}
"""Rules on features of rows, on differences of tensors, and on ranks at different steps, which no script can say;
`tests/rules` has their faults.
"""


@pytest.mark.slow
def test_the_shipped_tests_pass_by_every_executor() -> None:
    loaded = load([ROOT / "specs", ROOT / "stdlib"], tests=True)
    assert loaded.program is not None
    found = run_all(loaded.program, hooks=True)
    assert found.faults == ()
    assert [failure.message for each in found.tests for failure in each.failures] == []
    assert len(found.tests) >= 61


@pytest.mark.slow
def test_each_rule_of_the_essentials_is_seen_to_fire_and_to_hold() -> None:
    """And all but a few conditions are seen both ways: a rule that gained one lacks its test for a while."""
    essentials = load([ROOT / "specs" / "essentials"]).program
    loaded = load([ROOT / "specs"], tests=True).program
    assert essentials is not None and loaded is not None
    runs = [each.test_run for each in run_all(loaded, others=False).tests]
    counts = VerdictCounts()
    count_tests(runs, essentials.rules, counts)
    found = coverage(essentials.rules, counts)
    assert len(found.rules) >= 51
    gaps = [(gap.code, each.rule.qualified) for each in found.rules for gap in each.gaps]
    assert {gap for gap in gaps if gap[0] != "TS0613"} == ONLY_LIVE
    live = {name for _, name in ONLY_LIVE}
    sayable = [rule for rule in essentials.rules if rule.qualified not in live]
    assert coverage(sayable, counts).percent >= 97


def test_a_folder_of_rules_stands_for_its_tests_only_where_tests_are_wanted() -> None:
    pack = ROOT / "specs" / "health"
    with_tests, without = load([pack], tests=True), load([pack])
    assert with_tests.program is not None and without.program is not None
    assert with_tests.program.tests and not without.program.tests
    assert with_tests.program.rules == without.program.rules
