"""Rules about several ranks fire on a job of two that does much wrong, and are silent on a sound one.

What the zoo has a script for (`ranks_agree_on_finiteness`, `wrappers_reduce_all_trainable_parameters`,
`training_goes_through_the_wrapper`, `updates_of_replicas_agree`, `optimizer_state_starts_alike`) is not repeated here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.families import family

pytestmark = pytest.mark.gloo
JOB = Path(__file__).with_name("ranks_job.py")
ROOT = JOB.parents[2]
DATA_PARALLEL = {
    "ranks_draw_different_batches", "ranks_see_equally_many_batches", "loss_scale_agrees", "replicas_agree",
    "replicas_start_alike", "gradients_agree_after_all_reduce",
    "learning_rates_agree", "gradient_norms_agree", "options_of_replicas_agree",
}  # fmt: skip
EXPECTED = {
    (): set(),
    ("--faulty",): DATA_PARALLEL,
    ("--tensor-parallel",): set(),
    ("--tensor-parallel", "--faulty"): {"tensor_parallel_ranks_read_the_same_batch"},
    ("--sharded",): set(),
    ("--sharded", "--faulty"): {"ranks_draw_different_batches"},
    ("--own-order",): set(),
    ("--own-order", "--faulty"): {"ranks_read_different_samples"},
    ("--own-noise",): set(),
    ("--own-noise", "--faulty"): {"ranks_read_different_labels"},
    ("--own-updates",): set(),
    # That rank waits for the update, so its first step has two passes, of which the other rank lacks one.
    ("--own-updates", "--faulty"): {
        "replicas_make_the_same_updates",
        "ranks_make_different_batches",
    },
    ("--own-batches",): set(),
    ("--own-batches", "--faulty"): {"ranks_make_different_batches"},
    ("--own-metric",): set(),
    ("--own-metric", "--faulty"): {"evaluations_of_parts_are_put_together"},
    ("--plain-norm",): set(),
    ("--plain-norm", "--faulty"): {"plain_parameters_beside_sharded_ones_stay_alike"},
    ("--own-parts",): set(),
    ("--own-parts", "--faulty"): {"gradients_that_other_ranks_use_are_cleared"},
    ("--own-tokens",): set(),
    ("--own-tokens", "--faulty"): {
        "tensor_parallel_ranks_make_the_same_batch",
        "gradients_agree_after_all_reduce",
        "parameters_that_start_alike_stay_alike",
    },
}


def tspec(*arguments):
    command = [sys.executable, "-m", "tspec", *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.parametrize("options", family(EXPECTED, {"", "--faulty"}, name=" ".join))
def test_offline(options, tmp_path):
    from tspec.check.interpret import interpret
    from tspec.resolve import load
    from tspec.trace.read import read_trace

    done = tspec("record", "-o", str(tmp_path / "trace"), "--", str(JOB), *options)
    assert done.returncode == 0, done.stderr
    rules = load([ROOT / "specs" / "essentials"]).program.rules
    decided = interpret(rules, read_trace(tmp_path / "trace")).decided
    violated = {each.instance.rule for each in decided if each.verdict == "violated"}
    assert {rule.rpartition(".")[2] for rule in violated} == EXPECTED[options]


@pytest.mark.parametrize("options", family(EXPECTED, {"--tensor-parallel --faulty"}, name=" ".join))
def test_online(options, tmp_path):
    """`stop` ends the faulty job early, so that only what is wrong by then is found."""
    report = tmp_path / "report.json"
    settings = ("--fail-on", "warning", "--report", str(report))
    done = tspec("run", "specs/essentials", *settings, "--", str(JOB), *options)
    assert done.returncode == (1 if EXPECTED[options] else 0), done.stdout + done.stderr
    waiting, found = json.loads(report.read_text()), set()
    while waiting:
        one = waiting.pop()
        found.add(one["rule"].rpartition(".")[2])
        waiting += one["consequences"]
    assert found <= EXPECTED[options]
    assert bool(found) == bool(EXPECTED[options])
