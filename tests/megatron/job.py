"""What one rank of a job of the tests does: a GPT of four layers, trained by megatron-core as `pretrain_gpt.py` would.

It is imported after `run_on_cpu`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import (
    DistributedDataParallel,
    DistributedDataParallelConfig,
    finalize_model_grads,
)
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import (
    get_gpt_decoder_block_spec,
    get_gpt_mtp_block_spec,
)
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer.module import Float16Module
from megatron.core.transformer.transformer_config import TransformerConfig
from megatron.core.utils import get_batch_on_this_cp_rank

from tests.megatron.attention import ContextParallelAttention
from tests.megatron.layouts import GLOBAL_BATCH, LAYERS, Layout
from tests.megatron.weights import initialise

RATE = 0.005
BUCKET = 10_000
"""Elements, if buckets are gathered one after the other: the default of 40 million is more than the model has."""


def dtype_of(layout: Layout) -> torch.dtype:
    """That of the parameters and of what stages hand on."""
    return torch.bfloat16 if layout.bf16 else torch.float16 if layout.fp16 else torch.float32


def config_of(layout: Layout) -> TransformerConfig:
    """The package's own configuration of a layout."""
    options: dict[str, Any] = {}
    if layout.first:
        options["num_layers_in_first_pipeline_stage"] = layout.first
    if layout.virtual > 1:
        options["virtual_pipeline_model_parallel_size"] = layout.virtual
        options |= {"overlap_p2p_comm": True, "batch_p2p_comm": False}
    if layout.recompute:
        options |= {"recompute_granularity": "full", "recompute_method": "uniform"}
        options["recompute_num_layers"] = 1
    if layout.experts:
        options |= {"num_moe_experts": layout.experts, "moe_router_topk": 2}
        options |= {"moe_token_dispatcher_type": "alltoall"}
        options["moe_aux_loss_coeff"] = 0.0 if layout.noaux else 0.01
    if layout.capacity:
        options["moe_expert_capacity_factor"] = 1.0
    if layout.bias:
        options |= {"moe_router_enable_expert_bias": True, "moe_router_score_function": "sigmoid"}
        options |= {"moe_router_load_balancing_type": "none", "moe_aux_loss_coeff": 0.0}
    if layout.sink:
        options["softmax_type"] = "learnable"
    if layout.mtp:
        options["mtp_num_layers"] = layout.mtp
    return TransformerConfig(
        num_layers=LAYERS,
        hidden_size=layout.hidden,
        ffn_hidden_size=2 * layout.hidden,
        num_attention_heads=4,
        num_query_groups=layout.kv or None,
        attention_dropout=0.1 if layout.dropout else 0.0,
        hidden_dropout=0.1 if layout.dropout else 0.0,
        add_bias_linear=not (layout.experts or layout.nobias),
        gated_linear_unit=layout.swiglu,
        qk_layernorm=layout.qknorm,
        activation_func=torch.nn.functional.silu if layout.swiglu else torch.nn.functional.gelu,
        normalization="RMSNorm" if layout.rms else "LayerNorm",
        tensor_model_parallel_size=layout.tp,
        context_parallel_size=layout.cp,
        pipeline_model_parallel_size=layout.pp,
        expert_model_parallel_size=layout.ep,
        expert_tensor_parallel_size=layout.etp,
        sequence_parallel=layout.sp,
        bf16=layout.bf16,
        fp16=layout.fp16,
        params_dtype=dtype_of(layout),
        pipeline_dtype=dtype_of(layout),
        calculate_per_token_loss=layout.tokens,
        use_cpu_initialization=True,
        persist_layer_norm=False,
        bias_activation_fusion=False,
        bias_dropout_fusion=False,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        deallocate_pipeline_outputs=layout.virtual == 1,
        **options,
    )


def layers_of(config: TransformerConfig, stage: int | None) -> Any:
    """What the layers of a chunk are made from."""
    block = get_gpt_decoder_block_spec(config, use_transformer_engine=False, vp_stage=stage)
    for layer in block.layer_specs if config.context_parallel_size > 1 else ():
        layer.submodules.self_attention.submodules.core_attention = ContextParallelAttention
    return block


def chunks_of(config: TransformerConfig, layout: Layout) -> list[Any]:
    """The wrapped model chunks of this rank."""
    bare = []
    for place in range(layout.virtual):
        stage = place if layout.virtual > 1 else None
        layers = layers_of(config, stage)
        bare.append(
            GPTModel(
                config,
                layers,
                vocab_size=layout.rows,
                max_sequence_length=layout.sequence,
                pre_process=parallel_state.is_pipeline_first_stage(False, stage),
                post_process=parallel_state.is_pipeline_last_stage(False, stage),
                share_embeddings_and_output_weights=not layout.untied,
                position_embedding_type="rope" if layout.rope else "learned_absolute",
                mtp_block_spec=get_gpt_mtp_block_spec(config, layers, False, stage)
                if layout.mtp
                else None,
                vp_stage=stage,
            )
        )
    initialise(bare, layout)
    for chunk in bare:
        chunk.cuda()
    buckets = DistributedDataParallelConfig(
        use_distributed_optimizer=layout.zero,
        overlap_grad_reduce=layout.overlap,
        overlap_param_gather=layout.gather,
        bucket_size=BUCKET if layout.gather else None,
    )
    wrapped = [
        DistributedDataParallel(
            config,
            buckets,
            Float16Module(config, chunk) if layout.bf16 or layout.fp16 else chunk,
            disable_bucketing=place > 0,
        )
        for place, chunk in enumerate(bare)
    ]
    if layout.frozen:
        for chunk in wrapped:
            freeze(chunk)
    if layout.overlap:
        config.no_sync_func = [chunk.no_sync for chunk in wrapped]
        config.no_sync_func = config.no_sync_func[0] if len(wrapped) == 1 else config.no_sync_func
    return wrapped


def freeze(chunk: Any) -> None:
    """Its word embeddings ask for no gradient. Main gradients that they have already are zero."""
    for name, parameter in chunk.named_parameters():
        if name.endswith("word_embeddings.weight"):
            parameter.requires_grad_(False)


def optimizer_of(config: TransformerConfig, chunks: list[Any], layout: Layout) -> tuple[Any, Any]:
    """Adam with clipping, and the schedule of its rate."""
    optimizer = get_megatron_optimizer(
        OptimizerConfig(
            optimizer="adam",
            lr=RATE,
            clip_grad=0.01 if layout.clipped else 1.0,
            bf16=layout.bf16,
            fp16=layout.fp16,
            initial_loss_scale=float(layout.scale),
            params_dtype=config.params_dtype,
            use_distributed_optimizer=layout.zero,
            overlap_param_gather=layout.gather,
        ),
        chunks,
    )
    schedule = OptimizerParamScheduler(
        optimizer,
        init_lr=0.0,
        max_lr=RATE,
        min_lr=RATE,
        lr_warmup_steps=layout.warmup * GLOBAL_BATCH,
        lr_decay_steps=1000 * GLOBAL_BATCH,
        lr_decay_style="constant",
        start_wd=0.01,
        end_wd=0.01,
        wd_incr_steps=0,
        wd_incr_style="constant",
    )
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = optimizer.scale_loss
    return optimizer, schedule


def sample(layout: Layout, number: int) -> torch.Tensor:
    """A sequence that counts on by a stride of its own: something that can be learned."""
    places = torch.arange(layout.sequence + 1)
    return ((number + layout.seed) * 7 + places * (1 + number % 3)) % layout.vocabulary


def batches(layout: Layout, made: int = 0) -> Iterator[dict[str, torch.Tensor]]:
    """Micro-batches of this rank after so many steps, for ever. A step's samples are the same in all layouts.

    Each context-parallel rank has its part of every sequence.
    """
    length = layout.sequence
    place = torch.arange(length).expand(layout.microbatch, -1)
    rank = parallel_state.get_data_parallel_rank()
    causal = torch.ones(1, 1, length, length).tril() < 0.5
    first = made * GLOBAL_BATCH
    if layout.owndata:
        first += 1000 * layout.world + dist.get_rank()
    while True:
        for number in range(layout.microbatches):
            at = first + (number * layout.dp + rank) * layout.microbatch
            rows = torch.stack([sample(layout, at + row) for row in range(layout.microbatch)])
            whole = {
                "input_ids": rows[:, :-1].cuda(),
                "labels": rows[:, 1:].cuda(),
                "position_ids": place.cuda(),
                "attention_mask": causal.cuda(),
            }
            yield get_batch_on_this_cp_rank(whole)
        first += GLOBAL_BATCH


def loss_of(layout: Layout, places: torch.Tensor, output: torch.Tensor) -> tuple[Any, ...]:
    """The loss of a micro-batch, as the schedule wants it, and as it is reported.

    With a count of tokens it is a sum, and the schedule divides it; without one it is multiplied by the context-parallel size.
    """
    losses = output.float()
    if layout.masked:
        losses = losses[places >= layout.sequence // 4]
    if layout.tokens or layout.masked or layout.cp > 1:
        count = torch.tensor(losses.numel(), dtype=torch.int, device=losses.device)
        return losses.sum(), count, {"loss": losses.mean().detach()}
    return losses.mean(), {"loss": losses.mean().detach()}


def forward_step(layout: Layout, iterator: Iterator[Any], model: Any) -> tuple[Any, Any]:
    """What Megatron's schedules call for each micro-batch."""
    batch = next(iterator)
    return model(**batch), partial(loss_of, layout, batch["position_ids"])


def set_up(layout: Layout) -> None:
    """Build the groups and the random streams of a layout; the process group is there."""
    parallel_state.initialize_model_parallel(
        layout.tp,
        layout.pp,
        virtual_pipeline_model_parallel_size=layout.virtual if layout.virtual > 1 else None,
        context_parallel_size=layout.cp,
        expert_model_parallel_size=layout.ep,
        expert_tensor_parallel_size=layout.etp,
    )
    tensor_parallel.model_parallel_cuda_manual_seed(1234)


@dataclass(frozen=True, slots=True)
class Job:
    """What one rank trains with."""

    layout: Layout
    chunks: list[Any]
    optimizer: Any
    schedule: Any
    iterators: list[Iterator[dict[str, torch.Tensor]]]
    """The data of each chunk."""

    def step(self) -> dict[str, float | None]:
        """Make one step; its loss and its gradient norm, the same on all ranks."""
        several = self.layout.virtual > 1
        for chunk in self.chunks:
            chunk.zero_grad_buffer()
        self.optimizer.zero_grad()
        losses = get_forward_backward_func()(
            forward_step_func=partial(forward_step, self.layout),
            data_iterator=self.iterators if several else self.iterators[0],
            model=self.chunks if several else self.chunks[0],
            num_microbatches=self.layout.microbatches,
            seq_length=self.layout.sequence,
            micro_batch_size=self.layout.microbatch,
        )
        success, norm, _ = self.optimizer.step()
        if success:
            self.schedule.step(increment=GLOBAL_BATCH)
        return {"loss": _mean([one["loss"] for one in losses]), "norm": norm}


def job_of(layout: Layout, made: int = 0) -> Job:
    """Build the job of a layout, of which so many steps were made before; the process group is there."""
    set_up(layout)
    config = config_of(layout)
    chunks = chunks_of(config, layout)
    optimizer, schedule = optimizer_of(config, chunks, layout)
    for chunk in chunks:
        chunk.train()
    return Job(layout, chunks, optimizer, schedule, [batches(layout, made) for _ in chunks])


def train(
    layout: Layout, stepped: Callable[[], None] = lambda: None
) -> list[dict[str, float | None]]:
    """Make the steps of a layout; loss and gradient norm of each.

    `stepped` is called after each step.
    """
    job = job_of(layout)
    made = []
    for _ in range(layout.steps):
        made.append(job.step())
        stepped()
    return made


def _mean(losses: list[torch.Tensor]) -> float:
    """The mean over the micro-batches of all data; only last stages have any, and each of tp the same."""
    total = torch.tensor([sum(map(float, losses)), float(len(losses))]).cuda()
    dist.all_reduce(total)
    return (total[0] / total[1]).item()
