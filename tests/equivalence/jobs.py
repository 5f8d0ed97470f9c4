"""Compares jobs of this folder with one rank, clean and with a fault, and prints what is found of each.

    python -m tests.equivalence.jobs [TEXT ...]

A text chooses the jobs whose name begins with it. Each is judged from full tensors, and again from sketches. torch is
imported once, and not in each rank. The exit status is 1 if something else is found than `JOBS` says, or if another tensor
is the first from sketches.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.equivalence.judged import NOTHING, Job, References, judged


def states(options: str, fault: str, found: str, more: str = "") -> Job:
    """A job of the states of optimizers."""
    equivalence = "states_are_those_of_one_rank"
    return Job("states", equivalence, options, fault, found, more)


def low_precision(equivalence: str, options: str, fault: str, found: str, more: str = "") -> Job:
    """A tensor-parallel job in low precision."""
    return Job("low_precision", equivalence, f"--precision {options}", fault, found, more)


def first_weights(fault: str, found: str, more: str = "") -> Job:
    """A job that draws its own first weights."""
    return Job("first_weights", "ranks_are_one", "", fault, found, more)


def zero(options: str, found: str, more: str = "") -> Job:
    """A job whose ranks keep states of some parameters each."""
    equivalence = "states_are_those_of_one_rank"
    return Job("data_parallel", equivalence, f"--zero {options}".strip(), "", found, more)


def context_parallel(options: str, fault: str, found: str, more: str, ranks: int = 2) -> Job:
    """A job whose ranks have parts of each sequence."""
    return Job("context_parallel", "parts_are_whole", options, fault, found, more, ranks)


def pipelined(options: str, fault: str, found: str, more: str = "") -> Job:
    """A job under a schedule of torch's pipelines."""
    return Job("pipelined", "stages_are_one_rank", options, fault, found, more)


def main_copies(fault: str, found: str, more: str = "") -> Job:
    """A job whose parameters are copies of main parameters."""
    return Job("main_copies", "two_ranks_are_one", "", fault, found, more)


def engine(equivalence: str, options: str, fault: str, found: str, more: str = "") -> Job:
    """A job with activation checkpointing, or compiled."""
    return Job("engines", equivalence, f"--engine {options}", fault, found, more)


def seq2seq(options: str, fault: str, found: str, more: str = "") -> Job:
    """An encoder and a decoder under a plan of DTensor placements."""
    return Job("seq2seq", "ranks_are_one", options, fault, found, more)


def sequence_parallel(options: str, fault: str, found: str, more: str = "") -> Job:
    """A job whose ranks have parts of each sequence and of each matrix."""
    return Job("sequence_parallel", "ranks_are_one", options, fault, found, more)


def expert_parallel(options: str, fault: str, found: str, more: str = "") -> Job:
    """A job whose ranks have some of the experts."""
    return Job("expert_parallel", "ranks_are_one", options, fault, found, more)


def clipped(equivalence: str, options: str, fault: str, found: str, more: str = "") -> Job:
    """A job that clips its gradients by their norm."""
    return Job("clipped", equivalence, options, fault, found, more)


def tied(fault: str, found: str, more: str = "") -> Job:
    """Two stages by hand that share a table."""
    return Job("tied", "stages_are_one_rank", "", fault, found, more)


def padded(options: str, fault: str, found: str, more: str = "", ranks: int = 2) -> Job:
    """A job whose vocabulary is padded to a multiple of its number of ranks."""
    return Job("padded", "ranks_are_one", options, fault, found, more, ranks)


BFLOAT16 = "--dtype bfloat16"
OVERFLOWS = "--scale 262144000 --steps 16"
"""In float16: the first updates are skipped."""
BOTH = "wrong: params, states\n"
FC2 = "alone: blocks.1.fc2: "
EIGHT_BITS = (("float8", "float8"), ("float8_of_bfloat16", f"float8 {BFLOAT16}"))
CONTEXT_PARALLEL = (
    ("", NOTHING, ""),
    (
        "positions",
        "inputs positions, step 1",
        "alone: the script: what it hands to Transformer[places]",
    ),
    ("contiguous", "inputs Transformer, step 1", "alone: the script: what it hands to Transformer"),
    ("local_mean", "", "alone: the script: "),
    ("reduction", "param_grads blocks.1.qkv.weight", "alone: blocks.1.qkv: gradients of its par"),
    ("local_mask", "outputs blocks.1.core, step 1", "alone: blocks.1.core: forward pass"),
    ("strides", "output_grads blocks.1.qkv, step 1", "alone: blocks.1.core: backward pass"),
)
CHECKPOINTED = (
    ("", NOTHING),
    ("random_state", "outputs blocks.1.drop, step 1", "alone: blocks.1.drop: backward pass"),
    ("buffer", "output_grads blocks.1.fc2, step 1", "alone: blocks.1: backward pass, buffers"),
)
COMPUTED_AGAIN = (
    CHECKPOINTED[0],
    ("random_state", "outputs blocks.1.drop, step 1", "alone: blocks.1.drop: forward pass"),
    ("buffer", "output_grads blocks.1.fc2, step 1", "alone: blocks.1: buffers"),
)
ENGINES = (
    ("checkpointed", "checkpoint", CHECKPOINTED),
    ("checkpointed", "reentrant", COMPUTED_AGAIN),
    ("checkpointed", "wrapper", CHECKPOINTED[:2]),
    (
        *("blocks_are_compiled", "blocks"),
        (
            ("", NOTHING),
            ("backward", "output_grads blocks.0, step 1", "alone: blocks.1: "),
            ("constant", "outputs blocks.1, step 2", "alone: blocks.1: forward pass"),
        ),
    ),
    (
        *("blocks_are_compiled", "inductor"),
        (
            ("", NOTHING),
            ("backward", "output_grads blocks.0, step 1", "alone: blocks.1: "),
        ),
    ),
    (
        *("shards_are_flat", "fsdp"),
        (
            ("", NOTHING),
            ("divided_twice", "outputs blocks.1.", "alone: blocks.1.fc2: "),
        ),
    ),
    (
        *("model_is_compiled", "model"),
        (
            ("", NOTHING),
            ("backward", "param_grads embed.weight, step 1", "alone: Model: gradients of its par"),
            ("constant", "outputs Model, step 2", "alone: Model: forward pass"),
        ),
    ),
)
PIPELINED = (
    ("", NOTHING),
    ("averaged_twice", "param_grads embed.weight, step 1", "gradients (wrong scale)"),
    ("not_averaged", "losses loss, step 1", "alone: the script: loss, backward pass (wrong scale)"),
    ("stale", "inputs blocks.2, step 1, micro-batch 2", "hands to blocks.2 (stale)"),
    ("order", "losses loss, step 1", "alone: the script: loss, backward pass"),
)
ONE_SIDE_DIVIDES_GRADIENTS = (
    ("candidate", "", NOTHING),
    ("candidate", "averaged_twice", "param_grads embed.weight, step 1", "gradients (wrong scale)"),
    ("candidate", *PIPELINED[2]),
    ("candidate", *PIPELINED[3]),
    ("candidate", "order", "losses loss, step 1", "alone: the script: loss, backward pass"),
    ("reference", "", NOTHING),
    ("reference", "averaged_twice", *PIPELINED[2][1:]),
    ("reference", "not_averaged", "param_grads embed.weight, step 1", "gradients (wrong scale)"),
    ("reference", *PIPELINED[3]),
)
SEQ2SEQ = (
    ("", NOTHING),
    ("scale", "inputs decoder.0.cross.proj, step 1", ".cross: what it hands to decoder."),
    ("mask", "inputs decoder.0.cross.proj, step 1", ".cross: what it hands to decoder."),
    (
        "memory",
        "inputs decoder.1[memory], step 1",
        "alone: Seq2Seq: what it hands to decoder.1[mem",
    ),
    ("positions", "inputs positions, step 1", "alone: Seq2Seq: what it hands to positions"),
    ("detached", "output_grads encoder.1, step 1", "decoder.1.cross.k, decoder.1.cross.v: back"),
    ("sum", "outputs decoder.1.fc2, step 1", "fc2: forward pass"),
    ("norm_gradient", "param_grads decoder.0.norm2.weight", "alone: decoder.0.norm2: grad"),
    ("labels", "losses loss, step 1", "alone: the script: loss, backward pass"),
    ("decay", "params encoder.0.norm1.weight, step 1", ": update of its parameters"),
)
IN_BFLOAT16 = (
    *SEQ2SEQ[:-2],
    ("labels", "output_grads head, step 1", "alone: the script: backward pass (wrong layout)"),
    ("decay", NOTHING),  # less than half of the distance of bfloat16 numbers near 1
)
SEQUENCE_PARALLEL = (
    ("", NOTHING),
    ("gather", "output_grads blocks.1.norm2, step 1", "alone: blocks.1.mlp: backward pass"),
    ("positions", "inputs blocks.1.attention.proj, step 1", "alone: blocks.1.attention: what it"),
    ("interleaved", "inputs blocks.1.attention.proj", "alone: blocks.1.attention: what it hands"),
    ("bias", "outputs blocks.1.mlp, step 1", "alone: blocks.1.mlp: forward pass"),
    ("norm", "param_grads blocks.1.norm2.weight, step 1", "alone: blocks.1.norm2: gradients of"),
    ("shared_bias", "param_grads blocks.1.mlp.bias, step 1", "alone: blocks.1.mlp: gradients of"),
    ("scale", "param_grads embedding.weight, step 1", "alone: embedding: gradients of its param"),
)
EXPERT_PARALLEL = (
    ("", NOTHING),
    ("gates", "outputs blocks.1.moe, step 1", "alone: blocks.1.moe: forward pass"),
    ("received", "outputs blocks.1.moe, step 1", "alone: blocks.1.moe: forward pass"),
    ("weights", "outputs blocks.1.moe, step 1", "alone: blocks.1.moe: forward pass"),
    ("auxiliary", "losses loss, step 1", "alone: blocks.1.moe: backward pass"),
    ("experts", "param_grads blocks.0.moe.experts.0.", ": gradients of its parameters (wrong sc"),
    ("averaged", "param_grads blocks.0.moe.experts.0.", ": gradients of its parameters"),
    ("router", "param_grads blocks.1.moe.router.weight", "alone: blocks.1.moe.router: gradients"),
)
OF_BFLOAT16 = (
    *(each for each in EXPERT_PARALLEL if each[0] != "auxiliary"),
    ("auxiliary", NOTHING),  # half a percent of the loss
)
CLEAN = ("", NOTHING, "")
OF_NORM = ("left_out", "gradient_norms norm, step 1", "alone: the script: norm of the gradients\n")
HALVED = ("halved", "gradient_norms norm, step 1", "alone: all parameters: gradients (wrong scale)")
CLIPPED = {
    "--dtype float32": (CLEAN, HALVED),
    BFLOAT16: (CLEAN,),  # the norm is rounded to bfloat16 there
    "--dtype float32 --autocast": (CLEAN, OF_NORM),
}
PADDED = (
    ("", NOTHING, ""),
    ("unmasked", "losses loss, step 1", "alone: the script: loss"),
    ("mask", "outputs embedding, step 1", "alone: embedding: forward pass"),
    ("head", "outputs head, step 1", "alone: head: forward pass"),
    ("gradient", "output_grads mlp, step 1", "alone: Model"),
)
JOBS: tuple[Job, ...] = (
    states(BFLOAT16, "", NOTHING),
    states("--new", "beta2", "states norm.weight.exp_avg_sq, step 1 in 50", BOTH),
    states("", "", NOTHING),
    states("", "reset", "states fc2.weight.exp_avg, step 1 in 60", BOTH),
    states("", "not_restored", "states norm.weight.exp_avg, before step 1"),
    states(BFLOAT16, "reset", "states fc2.weight.exp_avg, step 1 in 60", "wrong: states\n"),
    states(f"--new {BFLOAT16}", "beta2", "states norm.weight.exp_avg_sq, step 1"),
    states("--optimizer sgd", "", NOTHING),
    states(
        *(f"--optimizer sgd {BFLOAT16}", "reset"),
        *("states fc2.weight.momentum_buffer, step 1 in 45", "wrong: states\n"),
    ),
    first_weights("", NOTHING),
    first_weights(
        "piece", "params fc1.weight, before step 1", "fc1: first weights of its parameters (wrong"
    ),
    first_weights(
        *("spread", "params fc2.weight, before step 1"),
        "fc2: first weights of its parameters (wrong scale)\n",
    ),
    first_weights("own_bias", "params bias, before step 1", "Model: first weights of its param"),
    main_copies("", NOTHING),
    main_copies("truncated", "params 0.weight, step 1 in 30", "all parameters: update"),
    main_copies("stale", "params 2.bias, step 2 in 30", "2: update of its parameters (stale)"),
    zero("", NOTHING),
    zero("--beta2", "states 0.bias.exp_avg_sq, step 1 in 32", BOTH),
    low_precision("float16", "float16", "", NOTHING),
    low_precision("float16", "float16", "scale", "outputs blocks.1.fc2, step 1", FC2),
    low_precision("float16", "float16", "all_reduce", "outputs blocks.1.fc2, step 1", FC2),
    low_precision("float16", f"float16 {OVERFLOWS}", "", NOTHING),
    low_precision("float16", f"float16 {OVERFLOWS}", "scale", "outputs blocks.1.fc2, step 1", FC2),
    low_precision(
        *("float16", "float16 --steps 1", "overflow_of_one_rank"),
        *("updates optimizer, step 1, micro-batch 1", "the script: update"),
    ),
    *(
        low_precision(equivalence, options, *each)
        for equivalence, options in EIGHT_BITS
        for each in (
            ("", NOTHING),
            ("scale", "outputs blocks.1.fc2, step 1", FC2),
            ("all_reduce", "outputs blocks.1.fc2, step 1", FC2),
            ("amax", "buffers blocks.1.fc2.amax, step 1", FC2),
            ("stale_amax", "buffers blocks.1.fc2.amax, step 2", FC2),
            ("norm_gradient", "param_grads blocks.1.norm1.weight, step 1", "blocks.1.norm1: grad"),
        )
    ),
    *(
        low_precision(equivalence, f"{options} --recompute", *each)
        for equivalence, options in EIGHT_BITS
        for each in (
            ("", NOTHING),
            ("recomputed_cast", "outputs blocks.1.norm2, step 1", "what it hands to blocks.1"),
        )
    ),
    *(
        context_parallel(dtype, *each, ranks)
        for ranks in (2, 4)
        for dtype in ("--dtype float32", BFLOAT16)
        for each in CONTEXT_PARALLEL
    ),
    *(
        engine(equivalence, f"{name} {dtype}", *each)
        for equivalence, name, found in ENGINES
        for dtype in ("--dtype float32", BFLOAT16)
        for each in found
    ),
    *(
        pipelined(f"--schedule {schedule} {dtype}", *each)
        for schedule in ("GPipe", "1F1B")
        for dtype in ("--dtype float32", BFLOAT16)
        for each in PIPELINED
    ),
    *(
        pipelined(f"--schedule 1F1B --gradients {side} {dtype}", *each)
        for dtype in ("--dtype float32", BFLOAT16)
        for side, *each in ONE_SIDE_DIVIDES_GRADIENTS
    ),
    *(seq2seq("--dtype float32", *each) for each in SEQ2SEQ),
    *(seq2seq(BFLOAT16, *each) for each in IN_BFLOAT16),
    *(
        sequence_parallel(dtype, *each)
        for dtype in ("--dtype float32", BFLOAT16)
        for each in SEQUENCE_PARALLEL
    ),
    *(
        clipped(equivalence, f"{plan} {options}".strip(), *each)
        for equivalence, plan in (("fully_sharded", ""), ("tensor_parallel", "--plan"))
        for options in ("--dtype float32", BFLOAT16, "--dtype float32 --autocast")
        for each in CLIPPED[options]
    ),
    clipped("by_hand", "--by-hand", "", NOTHING),
    clipped(
        *("by_hand", "--by-hand", "unreduced", "param_grads fc2.bias, step 1"),
        "alone: fc2: gradients of its parameters",
    ),
    tied("", NOTHING),
    tied(
        *("unsummed", "param_grads embed.weight, step 1"),
        "alone: embed: gradients of its parameters (missing reduction)",
    ),
    *(
        padded(dtype, *each, ranks)
        for dtype, ranks in (("--dtype float32", 2), (BFLOAT16, 2), ("--dtype float32", 4))
        for each in PADDED
    ),
    *(expert_parallel("--dtype float32", *each) for each in EXPERT_PARALLEL),
    *(expert_parallel(f"--numbered all {BFLOAT16}", *each) for each in OF_BFLOAT16),
)


def chosen(texts: Iterable[str]) -> list[Job]:
    """The jobs whose name begins with one of some texts, all if there is none."""
    texts = tuple(texts) or ("",)
    return [job for job in JOBS if job.name.startswith(texts)]


def main() -> int:
    """Print a line for each job."""
    references: References = {}
    others = 0
    with tempfile.TemporaryDirectory() as name:
        for number, job in enumerate(chosen(sys.argv[1:])):
            folder = Path(name, str(number))
            folder.mkdir()
            found = judged(job, references, folder)
            print(f"{job.name}: {found}", end="", flush=True)
            if not job.is_found(str(found)):
                print(f"  expected: {job.found} … {job.more}", flush=True)
            others += not (found.agrees and job.is_found(str(found)))
    return int(others > 0)


if __name__ == "__main__":
    sys.exit(main())
