"""What a run lost that its siblings have is found by drafts from the siblings: a mask, a tie, a schedule, a division, an order of axes, a skip connection."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs import PATIENCE, ROOT, run

SCRIPT = Path(__file__).with_name("tokens.py")
FINDS = {
    "no-mask": "attention_is_causal",
    "untied": "count_parameters_names_above_count_parameters",
    "rate-not-set": "spread_optimizer_step_lr",
    "far-horizon": "learning_rates_come_down",
    "not-averaged": "abs_mean_calls_backward_0_loss_count_calls_backward",
    "same-data": "distinct_calls_forward_inputs",
    "heads-mixed": "losses_are_computed_by_known_operations",
    "no-skip": "losses_are_computed_by_known_operations",
}
"""How the name of the draft begins that finds it."""

pytestmark = pytest.mark.slow


def tspec(*arguments: str | Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "tspec", *map(str, arguments)],
        cwd=ROOT,
        check=True,
        timeout=PATIENCE,
    )


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("siblings")
    runs = [folder / "a", folder / "b"]
    for seed, out in enumerate(runs):
        tspec("record", "-o", out, "--", SCRIPT, "--seed", str(seed))
    tspec("infer", *runs, "-o", folder / "drafts.tspec")
    return folder / "drafts.tspec"


@pytest.mark.parametrize("bug", FINDS)
def test_what_is_lost_is_found(bug: str, drafts: Path, tmp_path: Path) -> None:
    found = run([str(drafts)], SCRIPT, tmp_path / "report.json", "--seed", "2", "--bug", bug)
    rules = [one["rule"].rpartition(".")[2] for one in found.all]
    assert any(rule.startswith(FINDS[bug]) for rule in rules), found.messages


def test_another_sibling_is_not_accused(drafts: Path, tmp_path: Path) -> None:
    found = run([str(drafts)], SCRIPT, tmp_path / "report.json", "--seed", "2")
    assert found.messages == []
    essentials = run(["specs/essentials"], SCRIPT, tmp_path / "report.json", "--seed", "2")
    assert essentials.messages == []
