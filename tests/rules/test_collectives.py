"""Packs on collectives of each kind, FSDP2 and DTensor: silent on a sound job, and a fault of each is found.

With gloo a rank in another group, or one that reduces other sizes, ends or hangs the job before any rule is decided.
What averages gradients by hand is here too: `gradual_job.py`, statistics: `statistics_job.py`, and updates that ranks share:
`owners_job.py`, stages that send each other messages: `stages_by_hand_job.py`, layers that are cut by hand: `cut_by_hand_job.py`, and the ways in which ranks put together what they learn:
`sharded_by_hand_job.py`.
"""

import json
import re
from pathlib import Path

import pytest

from tests.families import family
from tests.jobs import tspec

JOB = Path(__file__).with_name("collectives_job.py")
BY_HAND = Path(__file__).with_name("gradual_job.py")
CUT_BY_HAND = Path(__file__).with_name("cut_by_hand_job.py")
OWNERS = Path(__file__).with_name("owners_job.py")
SHARDED_BY_HAND = Path(__file__).with_name("sharded_by_hand_job.py")
CONTRASTIVE = Path(__file__).with_name("contrastive_job.py")
RESUMED = Path(__file__).with_name("resumed_by_hand_job.py")
STAGES = Path(__file__).with_name("stages_by_hand_job.py")
STATISTICS = Path(__file__).with_name("statistics_job.py")
ROOT = JOB.parents[2]
REPLICATED = ROOT / "tests/native/replicated.py"


COPIES = ("essentials", "data_parallel", "replicas")
FAULTS = (
    ("async", "early", "results_are_waited_for"),
    ("async", "written", "results_are_waited_for"),
    ("async", "order", "ranks_reduce_in_one_order"),
    ("plain", "op", "ranks_reduce_by_one_operation"),
    ("functional", "op", "ranks_reduce_by_one_operation"),
    ("all", "splits", "split_sizes_fit"),
    ("plain", "dtype", "collectives_match"),
    ("plain", "driver", "collectives_leave_one_result"),
    ("messages", "unwaited", "all_messages_are_received"),
    ("coalesced", "driver", "collectives_leave_one_result"),
    ("gathered", "driver", "collectives_leave_one_result"),
    ("uneven", "driver", "collectives_leave_one_result"),
)
"""A kind of job, its fault, and a rule of the pack communication that finds it."""
FAULTS_BY_HAND = (
    ("unaveraged", "data_parallel", "gradients_agree"),
    ("own_moments", "data_parallel", "optimizer_state_agrees"),
    ("clamped", "data_parallel", "parameters_agree"),
    ("same_data", "data_parallel", "ranks_reduce_different_gradients"),
    ("clipped_first", "data_parallel", "gradients_are_averaged_before_they_are_clipped"),
    ("alone", "replicas", "ranks_learn_from_one_another"),
    ("apart", "replicas", "ranks_end_with_one_model"),
    ("same_data", "replicas", "ranks_that_reduce_gradients_have_different_inputs"),
    ("own_weights", "replicas", "parameters_with_one_gradient_start_alike"),
    ("left_out", "replicas", "parameters_that_start_alike_stay_alike"),
    ("norms", "replicas", "constant_parameters_of_replicas_stay_alike"),
    ("own_weights", "data_parallel", "parameters_start_alike"),
)
"""A fault of `gradual_job.py`, and a pack with a rule that finds it."""

FAULTS_OF_PARTS = (
    ("output", "equal_inputs_give_equal_gradients"),
    ("input", "equal_inputs_give_equal_gradients"),
    ("dropout", "equal_inputs_give_equal_gradients"),
    ("twice", "backward_passes_add_up_parts"),
)
"""A fault of `cut_by_hand_job.py`, and the rule of the pack essentials that finds it."""

FAULTS_OF_RESUMED = (
    ("none", "ranks_resume_at_one_step"),
    ("older", "ranks_resume_at_one_step"),
)
"""A fault of `resumed_by_hand_job.py`, and the rule of its packs that heads the report."""

FAULTS_OF_STAGES = (
    ("gradient", "received_messages_are_used"),
    ("activation", "received_messages_are_used"),
    ("buffer", "receives_leave_inputs_until_their_backward"),
    ("undivided", "losses_of_micro_batches_are_averaged"),
    ("clipped", "stages_are_scaled_alike"),
)
"""A fault of `stages_by_hand_job.py`, and the only rule that finds it."""

FAULTS_OF_STATISTICS = (("own", "buffers_agree_when_saved"),)
"""A fault of `statistics_job.py`, and a rule of the pack advice that finds it."""

FAULTS_OF_CANDIDATES = (("offset", "labels_of_gathered_candidates_begin_at_their_rank"),)
"""A fault of `contrastive_job.py`, and the only rule that finds it."""

FAULTS_OF_OWNERS = (
    ("unheld", "optimizers_hold_all_trainable_parameters", "0.bias"),
    ("left", "parameters_that_agreed_keep_agreeing", "2.weight"),
    ("clipped", "norms_of_reduced_gradients_agree", ""),
)
"""A fault of `owners_job.py`, the only rule that finds it, and the subject of the finding."""

FAULTS_OF_REPLICAS = (("left_behind", "ranks_without_updates_keep_up"),)
"""A fault of `native/replicated.py` that the pack communication stops before the rule of the pack essentials finds it."""


def run(tmp_path, *options, packs=("communication",), job=JOB, patience=60):
    """The process that ended, and the rules that were violated with their subjects.

    A rank waits `patience` seconds for the others.
    """
    report = tmp_path / "report.json"
    command = ("run", *(f"specs/{pack}" for pack in packs), "--fail-on", "warning")
    script = (str(job), *options)
    done = tspec(*command, "--report", str(report), "--", *script, TSPEC_TIMEOUT=str(patience))
    assert "internal error" not in done.stderr, done.stderr
    waiting, found = json.loads(report.read_text()), set()
    while waiting:
        one = waiting.pop()
        found.add((one["rule"].rpartition(".")[2], one.get("subject", "")))
        waiting += one["consequences"]
    return done, found


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("kind", "packs", "held"),
    [
        ("all", ("communication",), 6),
        pytest.param("messages", ("communication",), 3, marks=pytest.mark.exhaustive),
        pytest.param("coalesced", ("communication",), 5, marks=pytest.mark.exhaustive),
        pytest.param("gathered", ("communication",), 5, marks=pytest.mark.exhaustive),
        pytest.param("uneven", ("communication",), 5, marks=pytest.mark.exhaustive),
        ("fsdp", ("communication", *COPIES), 15),
        ("dtensor", ("communication", *COPIES), 15),
    ],
)
def test_sound_jobs(kind, packs, held, tmp_path):
    done, found = run(tmp_path, kind, packs=packs)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr
    counted = re.search(r"0 violated, (\d+) held", done.stdout)
    assert counted is not None and int(counted[1]) >= held, done.stdout


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("kind", "fault", "rule"),
    [
        pytest.param(*each, marks=pytest.mark.exhaustive if place % 5 else ())
        for place, each in enumerate(FAULTS)
    ],
)
def test_faults(kind, fault, rule, tmp_path):
    done, found = run(tmp_path, kind, fault)
    assert done.returncode == 1, done.stdout + done.stderr
    assert rule in {each for each, _ in found}


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("fault", "rule", "tensor"),
    [
        ("replica", "replicas_agree", "3.bias"),
        ("unreduced", "gradients_agree_after_all_reduce", "0.weight"),
        ("vanished", "early_gradients_do_not_vanish", ""),
    ],
)
def test_faults_of_placed_tensors(fault, rule, tensor, tmp_path):
    done, found = run(tmp_path, "dtensor", fault, packs=COPIES)
    assert done.returncode == 1, done.stdout + done.stderr
    assert (rule, tensor) in found


@pytest.mark.slow
@pytest.mark.gloo
def test_a_sound_job_that_averages_by_hand(tmp_path):
    done, found = run(tmp_path, packs=COPIES, job=BY_HAND)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("fault", "pack", "rule"),
    [
        pytest.param(*each, marks=pytest.mark.exhaustive if place % 5 else ())
        for place, each in enumerate(FAULTS_BY_HAND)
    ],
)
def test_faults_of_averages_by_hand(fault, pack, rule, tmp_path):
    done, found = run(tmp_path, fault, packs=(pack,), job=BY_HAND)
    assert done.returncode == 1, done.stdout + done.stderr
    assert rule in {each for each, _ in found}


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(("kind", "rule"), [("", ""), ("own", ""), *FAULTS_OF_CANDIDATES])
def test_candidates_that_ranks_gather(kind, rule, tmp_path):
    done, found = run(tmp_path, kind, packs=("essentials",), job=CONTRASTIVE)
    expected = {rule} if rule else set()
    assert {each for each, _ in found} == expected, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.gloo
def test_statistics_that_are_averaged(tmp_path):
    done, found = run(tmp_path, packs=("advice",), job=STATISTICS)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(("fault", "rule"), FAULTS_OF_STATISTICS)
def test_faults_of_statistics(fault, rule, tmp_path):
    done, found = run(tmp_path, fault, packs=("advice",), job=STATISTICS)
    assert done.returncode == 1, done.stdout + done.stderr
    assert rule in {each for each, _ in found}


@pytest.mark.gloo
@pytest.mark.parametrize("kind", family(("scatter", "irecv", "batch"), {"irecv"}))
def test_ranks_that_send_what_they_update(kind, tmp_path):
    packs = ("communication", "data_parallel", "essentials")
    done, found = run(tmp_path, kind, packs=packs, job=OWNERS)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(("fault", "rule", "subject"), FAULTS_OF_OWNERS)
def test_an_update_that_is_not_made_or_not_sent(fault, rule, subject, tmp_path):
    done, found = run(tmp_path, "scatter", fault, packs=COPIES, job=OWNERS)
    assert done.returncode == 1, done.stdout + done.stderr
    assert found == {(rule, subject)}


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(("bug", "rule"), FAULTS_OF_REPLICAS)
def test_a_rank_that_makes_no_update(bug, rule, tmp_path):
    """The first rank waits in vain for steps of the other."""
    options = ("--bug", bug)
    done, found = run(tmp_path, *options, packs=("essentials",), job=REPLICATED, patience=3)
    assert done.returncode == 1, done.stdout + done.stderr
    assert {each for each, _ in found} == {rule}


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize("kind", ["", "clips"])
def test_stages_that_use_all_messages(kind, tmp_path):
    packs = ("communication", "essentials")
    done, found = run(tmp_path, kind, packs=packs, job=STAGES)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr


@pytest.mark.gloo
@pytest.mark.parametrize(
    "fault", family(dict(FAULTS_OF_STAGES), {"buffer", "undivided", "clipped"}, {"gradient"})
)
def test_a_message_that_is_not_used(fault, tmp_path):
    packs = ("communication", "essentials")
    done, found = run(tmp_path, fault, packs=packs, job=STAGES)
    assert done.returncode == 1, done.stdout + done.stderr
    assert {rule for rule, _ in found} == {dict(FAULTS_OF_STAGES)[fault]}


@pytest.mark.slow
@pytest.mark.gloo
def test_layers_that_are_cut_by_hand(tmp_path):
    done, found = run(tmp_path, packs=("communication", "essentials"), job=CUT_BY_HAND)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr


@pytest.mark.gloo
@pytest.mark.parametrize("fault", family(dict(FAULTS_OF_PARTS), {"output", "twice"}))
def test_faults_of_layers_that_are_cut_by_hand(fault, tmp_path):
    done, found = run(tmp_path, fault, packs=("communication", "essentials"), job=CUT_BY_HAND)
    assert done.returncode == 1, done.stdout + done.stderr
    assert {each for each, _ in found} == {dict(FAULTS_OF_PARTS)[fault]}


COMBINED = [
    "slices",
    "owners",
    "gathered",
    "hooks",
    "averages",
    "seldom",
    "exchanged",
    "served",
    "watched",
]
"""Kinds of `sharded_by_hand_job.py`."""
FAULTS_OF_SHARES = tuple(
    (kind, "updates_use_gradients_of_all_ranks") for kind in ("slices", "owners", "averages")
)
"""Those in which the fault sends what one rank learned alone, and the rule of the pack essentials that finds it."""


@pytest.mark.gloo
@pytest.mark.parametrize("kind", family(COMBINED, {"hooks"}, {"slices"}))
def test_ranks_that_put_together_what_they_learn(kind, tmp_path):
    done, found = run(tmp_path, kind, packs=("essentials",), job=SHARDED_BY_HAND)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr


@pytest.mark.gloo
@pytest.mark.parametrize("kind", family(dict(FAULTS_OF_SHARES), (), {"owners"}))
def test_ranks_that_overwrite_what_the_others_learn(kind, tmp_path):
    done, found = run(tmp_path, kind, "unreduced", packs=("essentials",), job=SHARDED_BY_HAND)
    assert done.returncode == 1, done.stdout + done.stderr
    assert {rule for rule, _ in found} == {dict(FAULTS_OF_SHARES)[kind]}


FAULTS_OF_SUMS = (("gathered", "summed_gradients_are_averaged"),)
"""A kind in which the fault adds up what ranks learned, and the only rule that finds it."""


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(("kind", "rule"), FAULTS_OF_SUMS)
def test_ranks_that_add_up_what_they_learn(kind, rule, tmp_path):
    done, found = run(tmp_path, kind, "summed", packs=("essentials",), job=SHARDED_BY_HAND)
    assert done.returncode == 1, done.stdout + done.stderr
    assert {each for each, _ in found} == {rule}


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize("fault", ["", "unreduced"])
def test_gradients_of_one_rank_in_a_recording(fault, tmp_path):
    from tspec.check.interpret import interpret
    from tspec.resolve import load
    from tspec.trace.read import read_trace

    script = (str(SHARDED_BY_HAND), "slices", *filter(None, [fault]))
    recorded = tspec("record", "-o", str(tmp_path / "trace"), "--", *script)
    assert recorded.returncode == 0, recorded.stderr
    rules = load([ROOT / "specs" / "replicas"]).program.rules
    decided = interpret(rules, read_trace(tmp_path / "trace")).decided
    violated = {each.instance.rule for each in decided if each.verdict == "violated"}
    expected = {"std.replicas.updates_use_gradients_of_all_ranks"} if fault else set()
    assert violated == expected


@pytest.mark.slow
@pytest.mark.gloo
def test_one_rank_that_resumes_for_all(tmp_path):
    done, found = run(tmp_path, "served", packs=("essentials",), job=RESUMED)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr


@pytest.mark.gloo
@pytest.mark.parametrize("fault", family(("", *dict(FAULTS_OF_RESUMED)), (), {"", "none"}))
def test_ranks_that_resume(fault, tmp_path):
    """Ranks at different steps violate other rules too: the one that names the fault heads the report."""
    packs = ("communication", "data_parallel", "essentials")
    done, found = run(tmp_path, *filter(None, [fault]), packs=packs, job=RESUMED)
    assert done.returncode == bool(fault), done.stdout + done.stderr
    heads = [
        one["rule"].rpartition(".")[2] for one in json.loads((tmp_path / "report.json").read_text())
    ]
    assert heads[:1] == [dict(FAULTS_OF_RESUMED)[fault]] if fault else found == set()
