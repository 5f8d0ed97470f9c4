"""Jobs in the transformers Trainer, Accelerate and Lightning, each with the real package.

A sound job is not accused, and of a job with a mistake that users of the framework make the rule named says so.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.families import family
from tests.jobs import run

HERE = Path(__file__).resolve().parent
PACKS = ("specs/essentials", "specs/checkpoints", "specs/transformers")
PACKAGES = {
    "trainer": "transformers",
    "accelerated": "accelerate",
    "lit": "lightning",
    "lit_gan": "lightning",
}
SOUND = (
    "trainer",
    "trainer --own-loss",
    "accelerated",
    "accelerated --processes 2",
    "accelerated --bug divides-itself",
    "lit",
    "lit --manual",
    "lit_gan",
)

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class Case:
    """A job with a mistake, the rule that sees it, and its pack."""

    job: str
    bug: str
    rule: str
    packs: tuple[str, ...] = PACKS


MISTAKES = (
    Case("trainer", "no-eval", "dropout_is_off_in_evaluation"),
    Case("trainer", "keeps-gradients", "gradients_are_cleared"),
    Case("trainer", "saves-trained", "checkpoints_hold_the_whole_model"),
    Case("trainer", "divides-twice", "training_has_all_its_steps"),
    Case("trainer", "short-stream", "training_takes_all_its_steps"),
    Case("trainer", "stale-optimizer", "optimizers_hold_all_trainable_parameters"),
    Case("trainer", "stale-schedule", "schedules_belong_to_an_optimizer_that_updates"),
    Case("trainer", "own-average", "trainers_average_over_all_micro_batches"),
    Case("trainer", "own-number", "trainers_average_over_all_micro_batches"),
    Case("trainer", "highest-loss", "checkpoints_are_compared_by_what_gets_better"),
    Case("accelerated", "loads-early", "states_are_loaded_after_prepare"),
    Case("accelerated", "no-eval", "dropout_is_off_in_evaluation"),
    Case("accelerated", "no-zero-grad", "gradients_are_cleared"),
    Case("accelerated", "not-prepared", "prepared_optimizers_accumulate"),
    Case("accelerated", "own-backward", "accelerators_divide_accumulated_losses"),
    Case("accelerated", "late-head", "optimizers_hold_parameters_of_a_model"),
    Case(
        "accelerated",
        "clears-each-micro-batch",
        "accumulated_gradients_are_kept",
        ("specs/advice",),
    ),
    Case(
        "accelerated --processes 2",
        "short-schedule",
        "schedules_ahead_of_updates_last_as_long_as_the_run",
    ),
    Case("lit", "no-eval", "dropout_is_off_in_evaluation"),
    Case("lit", "clips-late", "clipping_comes_before_the_update"),
    Case("lit", "head-left-out", "optimizers_hold_all_trainable_parameters"),
    Case("lit", "keeps-the-worst", "metrics_get_better_as_their_mode_says"),
    Case("lit --manual", "no-zero-grad", "gradients_are_cleared"),
    Case("lit_gan", "no-zero-grad", "updates_use_each_gradient_once"),
)
SAMPLE = {
    "trainer-stale-optimizer",
    "accelerated-clears-each-micro-batch",
    "lit-clips-late",
    "lit --manual-no-zero-grad",
}
"""One of each framework, and one of a loop within it."""
SOUND_SAMPLE = {"trainer", "accelerated --processes 2", "lit_gan"}


def script_of(job: str) -> Path:
    """The script of a job; the test is skipped where its framework is not installed."""
    name = job.split()[0]
    pytest.importorskip(PACKAGES[name])
    return HERE / f"{name}.py"


@pytest.mark.parametrize("job", family(SOUND, SOUND_SAMPLE))
def test_nothing_is_said_of_a_sound_job(job: str, tmp_path: Path) -> None:
    found = run(PACKS, script_of(job), tmp_path / "report.json", *job.split()[1:])
    assert found.messages == []
    assert "internal error" not in found.stderr and "Traceback" not in found.stderr
    assert found.decided > 1000


@pytest.mark.parametrize("case", family(MISTAKES, SAMPLE, name=lambda c: f"{c.job}-{c.bug}"))
def test_the_mistake_is_found(case: Case, tmp_path: Path) -> None:
    options = (*case.job.split()[1:], "--bug", case.bug)
    found = run(case.packs, script_of(case.job), tmp_path / "report.json", *options)
    assert found.steps(case.rule), found.messages
