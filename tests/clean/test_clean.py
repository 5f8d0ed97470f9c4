"""Sound jobs of many styles, on which the rules that every job should switch on say nothing.

Each script runs unedited, as a user would run it, under `tspec run`. That nothing was said is worth
something only where something was decided, so that is asserted too.
"""

from pathlib import Path

import pytest

from tests.families import family
from tests.jobs import run

HERE = Path(__file__).resolve().parent
FAST = {"gan", "fused_scaler", "own_optimizer", "layer_drop"}
SAMPLE = {
    "checkpointed_and_compiled",
    "ddp",
    "experts",
    "fsdp",
    "language_model",
    "resumed",
    "trainer_style",
}
"""Compiled, distributed, resumed and generative jobs, and a trainer; `make test-all` has the other kinds."""
JOBS = (
    "accumulate",
    "adapters",
    "alternating_epochs",
    "attacks",
    "averaged",
    "bfloat16_rounding",
    "born_again",
    "bounded_outputs",
    "checkpointed_and_compiled",
    "clears_at_the_end",
    "closure",
    "contrastive",
    "cool_down",
    "critic",
    "cyclic_rate",
    "ddp",
    "ddp --average",
    "ddp --late",
    "ddp --start environment",
    "ddp --start fork",
    "ddp --wrapper compiled",
    "ddp --wrapper flat",
    "ddp --wrapper replicate",
    "derivatives",
    "derivatives --kind attack",
    "derivatives --kind printed",
    "distilled",
    "draws_anew",
    "dropout_without_gradients",
    "dropout_without_gradients --kind accuracy",
    "dropout_without_gradients --kind montecarlo",
    "dropout_without_gradients --kind teacher",
    "ema",
    "experts",
    "fine_tuned",
    "fine_tuned --limit scaled",
    "folds",
    "folds --keep",
    "folds --norm",
    "frozen_batch_norm",
    "frozen_batch_norm --kind frozen",
    "fsdp",
    "fsdp --kind flat",
    "fused_scaler",
    "fused_scaler --no-fused",
    "gan",
    "growing_returns",
    "heads_by_turns",
    "heads_by_turns --named",
    "interpolated",
    "interpolated --kind reptile",
    "interpolated --kind mean --every 10",
    "joined",
    "joined --late",
    "joined --kind left",
    "joined --kind left --late",
    "joined --kind loader",
    "joined --kind sharded",
    "language_model",
    "layer_by_layer",
    "layer_drop",
    "line_search",
    "master_weights",
    "meta_learning",
    "new_head",
    "new_tasks",
    "new_tasks --no-loader",
    "new_tasks --kind lengths",
    "new_tasks --kind lengths --no-loader",
    "one_context",
    "own_optimizer",
    "packed_sequences",
    "pipeline",
    "pipeline --kind classifier",
    "policy_gradient",
    "projected",
    "projected --kind decoder",
    "projected --kind table",
    "pruned",
    "pruned --kind masked",
    "rare_reward",
    "resumed",
    "sequence_autoencoder",
    "sequence_autoencoder --kind recurrent",
    "shared_memory",
    "sharpness_aware",
    "sharpness_aware --no-loader",
    "skip_gram",
    "stops_within_an_epoch",
    "target_network",
    "target_network --gradients",
    "teacher",
    "trainer_style",
    "trainer_style --prefetch",
    "triplet",
    "variational",
    "withheld",
    "workers",
    "zero_lr_group",
    "zero_redundancy",
)


@pytest.mark.parametrize("job", family(JOBS, SAMPLE, FAST))
def test_nothing_is_said_of_a_sound_job(job: str, tmp_path: Path) -> None:
    script, *options = job.split()
    report = tmp_path / "report.json"
    found = run(["specs/essentials"], HERE / f"{script}.py", report, *options)
    assert found.messages == []
    assert "internal error" not in found.stderr
    assert "is not recorded" not in found.stderr
    assert found.decided > 100


ADVISED = {
    "adapters": 200,
    "dropout_without_gradients --kind montecarlo": 400,
    "folds": 1000,
    "folds --norm": 1000,
    "new_head": 200,
    "sequence_autoencoder": 400,
    "sharpness_aware": 400,
    "triplet": 400,
}
"""Jobs of which the rules that are only usually right say nothing either; how many instances are decided at least."""


@pytest.mark.parametrize("job", family(tuple(ADVISED), {"folds --norm"}))
def test_nothing_is_advised(job: str, tmp_path: Path) -> None:
    script, *options = job.split()
    found = run(["specs/advice"], HERE / f"{script}.py", tmp_path / "report.json", *options)
    assert found.messages == []
    assert "internal error" not in found.stderr
    assert "is not recorded" not in found.stderr
    assert found.decided > ADVISED[job]


def test_adapters_are_saved_without_their_base(tmp_path: Path) -> None:
    found = run(["specs/checkpoints"], HERE / "adapters.py", tmp_path / "report.json")
    assert found.messages == []
    assert found.decided > 10


def test_every_script_is_a_job() -> None:
    scripts = {path.stem for path in HERE.glob("*.py")} - {"test_clean"}
    assert scripts == {job.split()[0] for job in JOBS}
