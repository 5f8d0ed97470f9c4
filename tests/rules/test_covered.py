"""Every rule of the packs that ship finds a fault in some job of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frameworks.test_frameworks import MISTAKES
from tests.megatron.bugs.bug import all_bugs
from tests.megatron.test_losses import RULE as OF_LOST_LOSSES
from tests.native.faults import FAULTS as NATIVE
from tests.rules.test_collectives import (
    FAULTS,
    FAULTS_BY_HAND,
    FAULTS_OF_CANDIDATES,
    FAULTS_OF_OWNERS,
    FAULTS_OF_PARTS,
    FAULTS_OF_REPLICAS,
    FAULTS_OF_RESUMED,
    FAULTS_OF_SHARES,
    FAULTS_OF_STAGES,
    FAULTS_OF_STATISTICS,
    FAULTS_OF_SUMS,
)
from tests.rules.test_fire import VARIANTS
from tests.rules.test_ranks import EXPECTED
from tests.rules.test_resumed import FAULTS_OF_CHECKPOINTS
from tests.rules.test_resumed import FAULTS_OF_PARTS as FAULTS_OF_RESUMED_PARTS
from tests.rules.test_schedules import OF_TURNS
from tests.zoo.test_zoo import CASES
from tspec.resolve import load

ROOT = Path(__file__).parents[2]
PACKS = sorted(path.name for path in (ROOT / "specs").iterdir() if path.is_dir())
FOUND = frozenset().union(
    (variant.rule or name for name, variant in VARIANTS.items()),
    (case.rule for case in (*CASES, *MISTAKES)),
    (rule for *_, rule in (*FAULTS, *FAULTS_BY_HAND, *FAULTS_OF_PARTS)),
    (rule for _, rule, _ in FAULTS_OF_OWNERS),
    (rule for *_, rule in (*FAULTS_OF_SHARES, *FAULTS_OF_RESUMED, *FAULTS_OF_STATISTICS)),
    (rule for _, rule in (*FAULTS_OF_STAGES, *FAULTS_OF_CANDIDATES, *FAULTS_OF_SUMS)),
    (rule for _, rule in (*FAULTS_OF_CHECKPOINTS, *FAULTS_OF_RESUMED_PARTS, *FAULTS_OF_REPLICAS)),
    *EXPECTED.values(),
    (fault.expected.rule for fault in NATIVE if fault.expected),
    (bug.found.rule for bug in all_bugs() if bug.found),
    (OF_LOST_LOSSES, OF_TURNS),
)
"""Rules of which a test asserts that they find a fault that is put into a job."""


@pytest.mark.parametrize("pack", PACKS)
def test_every_rule_finds_a_fault(pack: str) -> None:
    program = load([ROOT / "specs" / pack]).program
    assert program is not None and program.rules
    assert {rule.name for rule in program.rules} - FOUND == set()
