"""The calls, optimizers and tensors of a job that an equivalence follows."""

from __future__ import annotations

from tspec.runtime.live.fields import INPUT_NAMES
from tspec.runtime.live.watch import EntitySpec, EventSpec, FieldSpec, WatchSpec

_CLASS = ("field", ("name", "self"), "__class__")
_CODE = ("field", ("field", ("name", "self"), "forward"), "__code__")
_TENSOR, _OPTIONAL = ("tensor",), ("optional", ("tensor",))
_LOSSES = (
    *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"),
)
"""Functions of torch whose `target` comes with the batch."""
WATCH = WatchSpec(
    events=(
        EventSpec(
            "forward",
            ("torch.nn.Module.__call__",),
            (
                FieldSpec("module", ("entity", "module"), ("name", "self")),
                FieldSpec("inputs", ("list", _TENSOR)),
                FieldSpec("arguments", ("list", ("string",)), ("name", INPUT_NAMES)),
                FieldSpec("output", _TENSOR, ("name", "result"), True),
                FieldSpec("made", ("list", _TENSOR), ("name", "result"), True),
                FieldSpec("class", ("string",), ("field", _CLASS, "__qualname__")),
                FieldSpec("file", ("string",), ("field", _CODE, "co_filename")),
                FieldSpec("line", ("int",), ("field", _CODE, "co_firstlineno")),
            ),
        ),
        EventSpec(
            "target",
            tuple(f"torch.nn.functional.{each}" for each in _LOSSES),
            (FieldSpec("target", _TENSOR, ("name", "target")),),
        ),
        EventSpec(
            "backward",
            ("torch.autograd.backward",),
            (FieldSpec("loss", _TENSOR, ("name", "tensors")),),
        ),
        EventSpec(
            "forward_step",
            ("megatron.core.pipeline_parallel.schedules.forward_step",),
            (FieldSpec("made", ("list", _TENSOR), ("name", "result"), True),),
        ),
        EventSpec(
            "chunk_loss",
            ("torch.distributed.pipelining.schedules._PipelineSchedule._compute_loss",),
            (FieldSpec("loss", _TENSOR, ("name", "result"), True),),
        ),
        EventSpec(
            "update",
            ("megatron.core.optimizer.optimizer.MegatronOptimizer.step",),
            (
                FieldSpec("made", ("bool",), ("index", ("name", "result"), ("literal", 0)), True),
                FieldSpec(
                    "norm",
                    ("optional", ("float",)),
                    ("index", ("name", "result"), ("literal", 1)),
                    True,
                ),
            ),
        ),
        EventSpec(
            "clip",
            (
                "torch.nn.utils.clip_grad_norm_",
                "torch.distributed.fsdp.FullyShardedDataParallel.clip_grad_norm_",
            ),
            (FieldSpec("norm", _TENSOR, ("name", "result"), True),),
        ),
        EventSpec(
            "optimizer.step",
            ("torch.optim.Optimizer.step",),
            (FieldSpec("optimizer", ("entity", "optimizer"), ("name", "self")),),
        ),
        EventSpec("scaled_step", ("torch.amp.grad_scaler.GradScaler.step",)),
        EventSpec(
            "unscaled",
            ("torch.amp.grad_scaler.GradScaler._unscale_grads_",),
            (FieldSpec("found", ("list", _TENSOR), ("name", "result"), True),),
        ),
    ),
    entities=(
        EntitySpec(
            "parameter",
            (
                FieldSpec("data", _TENSOR),
                FieldSpec("grad", _OPTIONAL),
                FieldSpec("main_grad", _OPTIONAL),
                FieldSpec("main", _OPTIONAL),
                FieldSpec("shard", _OPTIONAL),
                FieldSpec("gathered", ("optional", ("bool",))),
            ),
        ),
        EntitySpec("module", (FieldSpec("parameters", ("set", ("entity", "parameter"))),)),
        EntitySpec("optimizer", (FieldSpec("parameters", ("set", ("entity", "parameter"))),)),
        EntitySpec(
            "state",
            (
                FieldSpec("data", _TENSOR),
                FieldSpec("parameter", ("entity", "parameter")),
                FieldSpec("name", ("string",)),
            ),
        ),
        EntitySpec("buffer", (FieldSpec("data", _TENSOR),)),
    ),
)
"""The events to follow. Megatron's schedules bypass `torch.autograd.backward`, and its optimizers
clip gradients before they update. `made` is false of an update that was skipped. `found` are
numbers that a gradient scaler makes positive if gradients are not finite: a fused optimizer is called all the same,
and skips the update itself.
"""
