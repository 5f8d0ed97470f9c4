"""Every rule of the packs for jobs of several ranks finds a fault in some job of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.megatron.bugs.bug import all_bugs
from tests.native.faults import FAULTS as NATIVE
from tests.rules.test_collectives import FAULTS, FAULTS_BY_HAND
from tests.rules.test_fire import VARIANTS
from tests.rules.test_ranks import EXPECTED
from tests.zoo.test_zoo import CASES
from tspec.resolve import load

ROOT = Path(__file__).parents[2]
FOUND = frozenset().union(
    (variant.rule or name for name, variant in VARIANTS.items()),
    (case.rule for case in CASES),
    (rule for *_, rule in (*FAULTS, *FAULTS_BY_HAND)),
    *EXPECTED.values(),
    (fault.expected.rule for fault in NATIVE if fault.expected),
    (bug.found.rule for bug in all_bugs() if bug.found),
)
"""Rules of which a test asserts that they find a fault that is put into a job."""


CRASHES = {"dispatched_counts_fit"}
"""Rules whose faults end the job inside of the collective that they speak of, so that nothing is decided."""


@pytest.mark.parametrize(
    "pack",
    ["moe", "megatron", "communication", "data_parallel", "replicas", "checkpoints", "essentials"],
)
def test_every_rule_finds_a_fault(pack: str) -> None:
    program = load([ROOT / "specs" / pack]).program
    assert program is not None
    assert {rule.name for rule in program.rules} - FOUND - CRASHES == set()
