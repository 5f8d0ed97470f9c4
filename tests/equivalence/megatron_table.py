"""Runs megatron-core against one device, clean and with faults in it, and prints a table of what is found.

    python -m tests.equivalence.megatron_table > docs/megatron_equivalence.md

With names of faults, runs these alone. Each job runs in float32 and in bfloat16, or in float16, and is judged from full
tensors and from sketches. The status is 1 if something else is found than `CASES` says, or if a job without its fault differs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from tests.equivalence.forked import forked
from tests.equivalence.megatron_sweep import LLAMA, references, trial
from tests.megatron.bugs.bug import load
from tests.megatron.cpu import run_on_cpu
from tspec.equivalence.check import compare
from tspec.equivalence.localize import Localization, localize
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.runs import ReferenceRecordings, run_candidate
from tspec.equivalence.sides import Trial

HEAD = """# Megatron against one device

Each row is a job of the real megatron-core 0.16.1 on CPU, compared with the same model on one rank by a layout of
`specs/megatron/layouts`, with one of [the faults](megatron_faults.md) of `tests/megatron/bugs` in it. *First wrong* is the first
tensor in the order of the reference's run, and modules are those that are wrong by themselves, with the reference's inputs and
gradients, the worst first. *From sketches* says what is first wrong if each rank keeps sketches alone. The same job without the fault
is compared too: it is silent, from full tensors and from sketches. Printed by:

    python -m tests.equivalence.megatron_table > docs/megatron_equivalence.md

| fault | source | job | first wrong | wrong by itself | from sketches |
| --- | --- | --- | --- | --- | --- |"""

BFLOAT16 = "bf16"
FLOAT16 = "fp16"
FLOAT32 = "float32"


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, the job that it is put into, and what is to be found: the first wrong tensor and the worst module, None where no module is
    wrong by itself.

    `bfloat16_first` and `bfloat16_module` are those in bfloat16 where they are others. `hidden` are precisions whose round-off hides
    the fault, at least from sketches; `steps` how many it takes. With `scale` the fault is one of float16, and this is the first
    scale of the loss. A `*` in a module stands for any number of a layer.
    """

    fault: str
    job: str
    first: str
    module: str | None
    bfloat16_module: str = ""
    bfloat16_first: str = ""
    hidden: tuple[str, ...] = ()
    steps: int = 1
    scale: int = 0

    @property
    def precisions(self) -> tuple[str, ...]:
        """Those that the job runs in."""
        return (FLOAT16,) if self.scale else (FLOAT32, BFLOAT16)

    def text(self, precision: str) -> str:
        """The job in a precision."""
        words = {BFLOAT16: ("bf16",), FLOAT16: ("fp16", f"scale={self.scale}")}
        return ",".join((self.job, *words.get(precision, ())))

    def worst(self, precision: str) -> str | None:
        """The module that is to be the worst, if any is to be wrong by itself."""
        return (self.bfloat16_module if precision == BFLOAT16 else "") or self.module

    def wrong_first(self, precision: str) -> str:
        """The tensor that is to be the first wrong one."""
        return (self.bfloat16_first if precision == BFLOAT16 else "") or self.first


MOE = "experts=4,kv=2,swiglu,rms,rope,untied"
NORM = "gradient_norms norm"
UPDATE = "updates optimizer"
EACH_MLP = "decoder.layers.*.mlp"
"""Every layer has the fault, and their errors are within a few percent: which is the worst depends on the round-off of a machine's kernels."""
EMBEDDING = "embedding.word_embeddings"
EXPERT = "decoder.layers.0.mlp.experts.local_experts.0.linear_fc1"
CASES: tuple[Case, ...] = (
    Case(
        "activations_sent_in_bfloat16",
        "pp=2",
        "inputs decoder.layers.2",
        "decoder",
        hidden=(BFLOAT16,),
    ),
    Case(
        "angles_of_own_part",
        f"cp=2,{LLAMA}",
        "inputs decoder.layers.0[rotary_pos_emb]",
        "rotary_pos_emb",
    ),
    Case(
        "arrived_sorted_by_other_order",
        f"dp=2,ep=2,noaux,{MOE}",
        "outputs decoder.layers.0.mlp",
        EACH_MLP,
        hidden=(BFLOAT16,),
    ),
    Case(
        "auxiliary_gradient_lost",
        f"tp=2,sp,etp=2,{MOE}",
        "output_grads decoder.layers.3.pre_mlp_layernorm",
        "decoder.layers.1.mlp.router",
        hidden=(BFLOAT16,),
    ),
    Case(
        "auxiliary_loss_not_divided",
        f"tp=2,sp,etp=2,{MOE}",
        "output_grads decoder.layers.3.pre_mlp_layernorm",
        "decoder.layers.1.mlp.router",
        hidden=(BFLOAT16,),
    ),
    Case(
        "auxiliary_loss_scaled_by_ranks",
        f"tp=2,sp,etp=2,{MOE}",
        "output_grads decoder.layers.3.pre_mlp_layernorm",
        "decoder.layers.1.mlp.router",
        hidden=(BFLOAT16,),
    ),
    Case("batch_sent_to_all_ranks", "dp=2", "inputs embedding", "GPTModel"),
    Case(
        "bias_added_by_each_rank",
        "tp=2",
        "inputs decoder.layers.0.pre_cross_attn_layernorm",
        "decoder.layers.*.linear_*",
    ),
    Case("bucket_not_reduced", "dp=2,overlap", f"param_grads {EMBEDDING}.weight", "all parameters"),
    Case(
        "chunk_not_reduced",
        "pp=2,dp=2,virtual=2,untied",
        "param_grads decoder.layers.2.input_layernorm.weight",
        "decoder.final_layernorm",
        "decoder.layers.3.mlp.linear_fc2",
    ),
    Case(
        "cleared_between_micro_batches",
        "dp=2",
        "param_grads embedding.word_embeddings.weight",
        "all parameters",
    ),
    Case("context_not_reduced", "cp=2", f"param_grads {EMBEDDING}.weight", "all parameters"),
    Case("copy_marked_as_piece", "tp=2,clipped", NORM, ""),
    Case("embedding_mask_not_applied", "tp=2", f"outputs {EMBEDDING}", EMBEDDING),
    Case(
        "expert_bias_by_local_counts",
        f"tp=2,sp,etp=2,bias,{MOE}",
        "buffers decoder.layers.0.mlp.router.expert_bias",
        "decoder.layers.0.mlp.router",
    ),
    Case(
        "experts_averaged_over_their_copies",
        f"dp=2,ep=2,noaux,{MOE}",
        f"param_grads {EXPERT}.weight",
        "decoder.layers.*.mlp.experts.local_experts.*.linear_fc*",
    ),
    Case(
        "experts_left_out_of_norm",
        f"tp=2,sp,ep=2,clipped,{MOE}",
        NORM,
        "",
    ),
    Case(
        "experts_not_reduced",
        f"dp=4,ep=2,noaux,{MOE}",
        f"param_grads {EXPERT}.weight",
        "decoder.layers.0.mlp.experts.local_experts.2.linear_fc2",
        "decoder.layers.2.mlp.experts.local_experts.2.linear_fc1",
    ),
    Case(
        "experts_reduced_over_all_ranks",
        f"dp=2,ep=2,noaux,{MOE}",
        f"param_grads {EXPERT}.weight",
        "decoder.layers.*.mlp.experts.local_experts.*.linear_fc*",
    ),
    Case(
        "final_norm_not_marked",
        "tp=2,sp",
        "param_grads decoder.final_layernorm.weight",
        "decoder.final_layernorm",
    ),
    Case(
        "finalized_twice",
        "tp=2,sp",
        "param_grads decoder.layers.0.input_layernorm.weight",
        "decoder.final_layernorm",
    ),
    Case("frozen_after_the_optimizer", "dp=2", f"output_grads {EMBEDDING}", "embedding"),
    Case(
        "gradients_never_finalized",
        "dp=2,zero",
        f"param_grads {EMBEDDING}.weight",
        "all parameters",
    ),
    Case(
        "gradients_summed_over_data",
        "dp=2",
        f"param_grads {EMBEDDING}.weight",
        "all parameters",
    ),
    Case(
        "input_gradient_not_summed",
        "tp=2",
        "output_grads decoder.final_layernorm",
        "output_layer",
        "decoder.layers.2.mlp.linear_fc1",
    ),
    Case("labels_not_shifted", "dp=2", "inputs GPTModel[labels]", ""),
    Case(
        "last_micro_batch_not_passed_back",
        "pp=2",
        "output_grads decoder.layers.1",
        "",
    ),
    Case("last_stage_reads_the_next_batch", "pp=2", "outputs GPTModel", None),
    Case(
        "left_out_update_decays",
        "dp=2",
        f"params {EMBEDDING}.weight",
        "all parameters",
        steps=4,
        scale=2**32,
    ),
    Case(
        "last_bucket_not_gathered",
        "dp=2,zero,overlap,gather",
        "params decoder.layers.2.mlp.linear_fc2.weight",
        "decoder.layers.2.mlp.linear_fc2",
        steps=2,
    ),
    Case("loss_averaged_over_own_part", "cp=2", "losses loss", ""),
    Case("loss_divided_twice", "dp=2", f"param_grads {EMBEDDING}.weight", "all parameters"),
    Case("loss_not_scaled", "dp=2", "output_grads GPTModel", EMBEDDING, scale=256),
    Case("losses_of_gathered_logits", "tp=2", "outputs output_layer", "output_layer"),
    Case("losses_of_own_classes", "tp=2", "outputs GPTModel", "GPTModel"),
    Case(
        "main_gradients_not_cleared",
        "dp=2",
        f"param_grads {EMBEDDING}.weight",
        "all parameters",
        steps=2,
    ),
    Case(
        "mask_missing_on_one_rank",
        "tp=2",
        "outputs decoder.layers.0.self_attention.core_attention",
        "decoder.layers.0.self_attention.core_attention",
    ),
    Case("micro_batches_not_divided_by_ranks", "dp=2", "losses loss", ""),
    Case(
        "model_copy_not_written",
        "pp=2,untied",
        "params decoder.layers.2.input_layernorm.weight",
        "decoder.layers.2.input_layernorm",
        hidden=(FLOAT32,),
    ),
    Case(
        "norm_gradients_averaged",
        "tp=2,sp",
        "param_grads decoder.layers.0.input_layernorm.weight",
        "decoder.final_layernorm",
        "decoder.layers.3.mlp.linear_fc2",
    ),
    Case("norm_without_other_stages", "pp=2,clipped", NORM, ""),
    Case(
        "norms_decay_and_weights_do_not",
        "dp=2",
        f"params {EMBEDDING}.weight",
        "decoder.final_layernorm",
        hidden=(BFLOAT16,),
    ),
    Case(
        "norms_summed_over_tensor_parallel",
        "tp=2,cp=2",
        "param_grads decoder.layers.0.input_layernorm.weight",
        "decoder.final_layernorm",
    ),
    Case(
        "one_rank_clips_otherwise",
        "dp=2",
        f"states {EMBEDDING}.weight.exp_avg",
        EMBEDDING,
    ),
    Case(
        "one_rank_counts_positions_slower",
        f"tp=2,{LLAMA}",
        "inputs decoder.layers.0[rotary_pos_emb]",
        "rotary_pos_emb",
    ),
    Case(
        "one_rank_leaves_an_update_out",
        "dp=2",
        UPDATE,
        "",
        steps=2,
    ),
    Case("one_rank_runs_fewer_microbatches", "dp=2", "losses loss", ""),
    Case(
        "one_stage_clips_otherwise",
        "pp=2,untied,clipped",
        "states decoder.layers.2.self_attention.linear_proj.weight.exp_avg",
        "decoder.final_layernorm",
        "decoder.layers.3.mlp.linear_fc2",
    ),
    Case(
        "one_stage_has_another_rotary_base",
        "pp=2,swiglu,rms,rope,nobias",
        "inputs decoder.layers.2[rotary_pos_emb]",
        "rotary_pos_emb",
    ),
    Case(
        "one_stage_warms_up_otherwise",
        "pp=2,untied,warmup=4",
        "params decoder.layers.2.input_layernorm.weight",
        "decoder.layers.3.self_attention.linear_proj",
        bfloat16_first="params decoder.layers.2.input_layernorm.bias",
        steps=2,
    ),
    Case("optimizer_of_the_first_chunk", "pp=2,virtual=2,untied,clipped", NORM, ""),
    Case(
        "output_not_summed",
        "tp=2",
        f"outputs {EMBEDDING}",
        EMBEDDING,
        "decoder.layers.3.self_attention.linear_proj",
    ),
    Case("overflow_is_trained_on", "dp=2", UPDATE, "", steps=2),
    Case(
        "parameters_not_gathered",
        "dp=2,zero",
        f"params {EMBEDDING}.weight",
        "all parameters",
    ),
    Case("part_sent_to_all_ranks", "cp=2", "inputs embedding", "GPTModel"),
    Case(
        "peers_counted_by_own_tokens",
        f"dp=2,ep=2,noaux,{MOE}",
        "outputs decoder.layers.0.mlp",
        EACH_MLP,
        bfloat16_first="outputs decoder.layers.1.self_attention.core_attention",
    ),
    Case("positions_by_rank", "tp=2", "inputs embedding.position_embeddings", "GPTModel"),
    Case("positions_of_own_part", "cp=2", "inputs embedding.position_embeddings", "GPTModel"),
    Case(
        "rates_advance_at_each_micro_batch",
        "pp=2,untied,warmup=6",
        f"params {EMBEDDING}.weight",
        "all parameters",
        "decoder.layers.3.pre_mlp_layernorm",
        steps=2,
    ),
    Case(
        "rates_by_one_ranks_batch",
        "dp=2,warmup=4",
        f"params {EMBEDDING}.weight",
        "all parameters",
        hidden=(BFLOAT16,),
        steps=2,
    ),
    Case("recomputes_from_another_input", "recompute", "inputs decoder.layers.0", ""),
    Case(
        "router_collapses",
        f"dp=2,ep=2,noaux,{MOE}",
        "outputs decoder.layers.0.mlp",
        EACH_MLP,
    ),
    Case(
        "router_not_marked",
        f"tp=2,sp,etp=2,{MOE}",
        "param_grads decoder.layers.0.mlp.router.weight",
        "decoder.layers.1.mlp.router",
        "decoder.layers.2.mlp.router",
    ),
    Case(
        "router_prefers_two_of_many",
        f"dp=2,ep=2,noaux,{MOE.replace('experts=4', 'experts=32')}",
        "outputs decoder.layers.0.mlp",
        EACH_MLP,
    ),
    Case("samples_read_by_two_ranks", "dp=2", "inputs GPTModel", ""),
    Case(
        "schedule_left_out_on_one_stage",
        "pp=2,untied,warmup=4",
        "params decoder.layers.2.input_layernorm.weight",
        "decoder.layers.3.self_attention.linear_proj",
        bfloat16_first="params decoder.layers.2.input_layernorm.bias",
        steps=2,
    ),
    Case(
        "stage_begins_too_early",
        "pp=2",
        "params decoder.layers.2.input_layernorm.weight",
        "decoder.layers.2.mlp.linear_fc1",
    ),
    Case("stage_changes_its_input", "pp=2", "inputs decoder.layers.2", "decoder"),
    Case("targets_by_rank", "tp=2", "outputs GPTModel", "GPTModel"),
    Case("tied_embedding_counted_twice", "pp=2,clipped", NORM, ""),
    Case("tied_gradients_not_summed", "pp=2,zero", f"param_grads {EMBEDDING}.weight", EMBEDDING),
    Case("tokens_by_rank", "tp=2,sp", "inputs embedding", "GPTModel"),
    Case(
        "tokens_taken_for_padding",
        f"dp=2,ep=2,noaux,{MOE}",
        "outputs decoder.layers.0.mlp",
        "decoder.layers.0.mlp",
        "decoder.layers.2.mlp",
        "outputs decoder.layers.2.mlp",
    ),
    Case(
        "tokens_counted_by_rank", "dp=2,tokens", f"param_grads {EMBEDDING}.weight", "all parameters"
    ),
    Case("unscaled_twice", "dp=2", NORM, "", scale=256),
    Case("vocabulary_shifted_on_one_rank", "tp=2", f"outputs {EMBEDDING}", EMBEDDING),
)
LEFT_OUT: Mapping[str, str] = {
    "attention_sink_not_marked": "megatron-core has it [as it is](findings.md)",
    "capacity_by_rank": "one device has larger micro-batches, and so drops other tokens",
    "default_stream_by_rank": "no number of a step without dropout depends on it",
    "expert_copies_not_summed": "megatron-core has it [as it is](findings.md)",
    "experts_drawn_alike": "no number of a step without dropout depends on it",
    "heads_drop_alike": "no number of a step without dropout depends on it",
    "losses_smoothed_over_own_classes": "it needs label smoothing, which the reference does not have; the rules find it",
    "moments_begin_anew": "the reference begins anew too; no row goes on from a checkpoint",
    "never_in_training_mode": "no number of a step without dropout depends on it",
    "pieces_drawn_alike": "no number of a step without dropout depends on it",
    "positions_not_tied": "megatron-core has it [as it is](findings.md)",
    "weights_loaded_too_late": "both sides are given the same weights, and no row loads others",
}
"""Faults that no comparison with one device shows, and why."""
UNSEEN: Mapping[str, str] = {
    "activations_sent_in_bfloat16": "all activations are in bfloat16 there",
    "arrived_sorted_by_other_order": "full tensors show it; from sketches a later tensor is the first wrong one",
    "auxiliary_gradient_lost": "no tensor is off by more than 0.79 of its tolerance, which is three times the noise of four perturbed runs",
    "auxiliary_loss_not_divided": "no tensor is beyond its tolerance",
    "auxiliary_loss_scaled_by_ranks": "the same as of `auxiliary_gradient_lost`; the router's gradient of `decoder.layers.2` is off by 0.23, and 0.32 is tolerated",
    "norms_decay_and_weights_do_not": "the first update decays by 0.00005, which is less than half of a gap between numbers of bfloat16",
    "rates_by_one_ranks_batch": "after the second update the parameter that is furthest off is off by 0.013, and 0.029 is tolerated",
}
"""Faults that bfloat16 hides, and why, as measured."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found of a job with its fault, and without it."""

    outcome: Outcome
    localized: Localization | None
    sketched: Outcome
    clean: tuple[Outcome, Outcome]


def asked(case: Case, precision: str, fault: bool = True, sketched: bool = False) -> Trial:
    """The equivalence of a case."""
    found = trial(case.text(precision), case.steps)
    command = (*found.candidate, f"--bug={case.fault}") if fault else found.candidate
    return replace(found, candidate=command, localize=True, sketched=sketched)


def judged(
    case: Case,
    precision: str,
    reference: Callable[[Trial], ReferenceRecordings],
    folder: Path,
) -> Judged:
    """Run a job with its fault and without it, from full tensors and from sketches; `folder` is empty."""

    def run(fault: bool, sketched: bool) -> tuple[Outcome, Localization | None]:
        wanted = asked(case, precision, fault, sketched)
        known = reference(wanted)
        place = Path(tempfile.mkdtemp(dir=folder))
        candidate = run_candidate(wanted, known.recording, place, start=forked)
        outcome = compare(wanted, known, candidate)
        if sketched or not (outcome.wrong or outcome.faults):
            return outcome, None
        return outcome, localize(wanted, known, candidate, place, forked)

    outcome, localized = run(True, False)
    clean = run(False, False)[0], run(False, True)[0]
    return Judged(outcome, localized, run(True, True)[0], clean)


def first(outcome: Outcome) -> str:
    """The first tensor that differs, or of which the shards do not fit."""
    found = [*outcome.wrong, *outcome.faults]
    name = min(found, key=lambda each: each.order).name if found else None
    return "" if name is None else f"{name.kind} {name.name}"


def modules(found: Localization | None) -> Iterator[str]:
    """The modules that are wrong by themselves, and which part of them."""
    for each in found.suspects if found else ():
        why = "" if each.evidence.suggests == "unknown" else f" ({each.evidence.suggests})"
        yield f"{_module(each.module)}: {each.part}{why}"


def _module(name: str) -> str:
    return f"`{name}`" if name else "the script"


def row(case: Case, precision: str, found: Judged) -> str:
    """A line of the table."""
    named = list(modules(found.localized))
    more = [f"and {len(named) - 1} more"] if len(named) > 1 else []
    of_both = (
        f"`{first(each)}`" if first(each) else "nothing" for each in (found.outcome, found.sketched)
    )
    wrong, sketched = of_both
    job = f"`{asked(case, precision).name}`"
    cells = (case.fault, load(case.fault).source, job, wrong, "; ".join(named[:1] + more), sketched)
    return f"| {' | '.join(cells)} |"


def as_said(case: Case, precision: str, found: Judged) -> bool:
    """What was found is what was to be found, and nothing without the fault."""
    silent = not any(first(each) for each in found.clean)
    if precision in case.hidden:
        return silent
    named = found.localized.suspects if found.localized else ()
    module = named[0].module if named else None
    firsts = {first(found.outcome), first(found.sketched)}
    worst = case.worst(precision)
    is_named = module == worst or (module and worst and fnmatchcase(module, worst))
    return silent and firsts == {case.wrong_first(precision)} and bool(is_named)


def left_out() -> str:
    """The faults that bfloat16 hides and those that no row has, and why."""
    lines = (f"- `{fault}`: {why}" for fault, why in LEFT_OUT.items())
    unseen = (f"- `{fault}`: {why}" for fault, why in UNSEEN.items())
    hidden = ("", "Hidden by bfloat16:", "", *unseen)
    return "\n".join((*hidden, "", "Not compared:", "", *lines))


def main() -> None:
    names = sys.argv[1:]
    cases = [each for each in CASES if not names or each.fault in names]
    missed = False
    run_on_cpu()  # the package is imported once, and not in each rank
    print(HEAD)
    with tempfile.TemporaryDirectory() as place:
        reference = references(Path(place))
        for case in cases:
            for precision in case.precisions:
                folder = Path(tempfile.mkdtemp(dir=place))
                found = judged(case, precision, reference, folder)
                print(row(case, precision, found), flush=True)
                if not as_said(case, precision, found):
                    missed = True
                    accused = [first(each) for each in found.clean]
                    print(
                        f"{case.fault} in {precision} is not found so; clean: {accused}",
                        file=sys.stderr,
                    )
    if not names:
        print(left_out())
    sys.exit(missed)


if __name__ == "__main__":
    main()
