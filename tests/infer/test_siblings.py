"""What a run lost that its siblings have is found by drafts from the siblings: a mask, a tie, a schedule, a division, held-out data, a rate, a scale, the samples' own labels."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.families import family
from tests.jobs import run, tspec

HERE = Path(__file__).parent
FINDS = {
    "tokens": {
        "no-mask": "attention_is_causal",
        "untied": "count_parameters_names_above_count_parameters",
        "rate-not-set": "spread_optimizer_step_lr",
        "far-horizon": "learning_rates_come_down",
        "not-averaged": "abs_mean_calls_backward_0_loss_count_calls_backward",
        "same-data": "distinct_calls_forward_inputs",
        "heads-mixed": "losses_are_computed_by_known_operations",
        "no-skip": "losses_are_computed_by_known_operations",
    },
    "towers": {
        "raw": "inputs_0_of_forward_in_train_keeps_its_range",
        "misaligned": "losses_have_come_down_from_step_40",
        "first-is-right": "target_of_cross_entropy_in_train_keeps_its_range",
        "leak": "losses_are_not_far_below",
    },
    "views": {
        "one-view": "passes_of_a_step_differ",
        "no-rate": "all_groups_have_a_learning_rate",
        "held-out-trained": "evaluations_hold_out_their_samples",
        "measured-in-evaluation": "evaluation_leaves_buffers_alone",
    },
}
"""Of each script and bug how the name of the draft begins that finds it."""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("siblings")]


class Siblings(NamedTuple):
    """A script, and the drafts from two runs of it."""

    script: Path
    drafts: Path


@pytest.fixture(scope="module", params=family(FINDS, {"tokens"}))
def siblings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Siblings:
    script, folder = HERE / f"{request.param}.py", tmp_path_factory.mktemp("siblings")
    runs = [folder / "a", folder / "b"]
    for seed, out in enumerate(runs):
        done = tspec("record", "-o", str(out), "--", str(script), "--seed", str(seed))
        assert done.returncode == 0, done.stderr
    done = tspec("infer", *map(str, runs), "-o", str(folder / "drafts.tspec"))
    assert done.returncode == 0, done.stderr
    return Siblings(script, folder / "drafts.tspec")


def test_what_is_lost_is_found(siblings: Siblings, tmp_path: Path) -> None:
    for bug, name in FINDS[siblings.script.stem].items():
        options = ("--seed", "2", "--bug", bug)
        found = run([str(siblings.drafts)], siblings.script, tmp_path / "report.json", *options)
        rules = [one["rule"].rpartition(".")[2] for one in found.all]
        assert any(rule.startswith(name) for rule in rules), (bug, found.messages)


def test_another_sibling_is_not_accused(siblings: Siblings, tmp_path: Path) -> None:
    for specs in (str(siblings.drafts), "specs/essentials"):
        found = run([specs], siblings.script, tmp_path / "report.json", "--seed", "2")
        assert found.messages == []
