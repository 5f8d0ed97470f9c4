"""Makes megatron-core 0.16 run on CPU and gloo, in a process of a test's job.

Each function stands in for one thing of CUDA that the package asks for. `docs/design/megatron.md` has the table of
them. They stay for the life of the process: no process of the tests themselves calls `run_on_cpu`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

CPU = "cpu"
ON_GPU = os.environ.get("TESTS_ON_GPU") == "1"
"""Jobs run on a real GPU, one rank on each, and nothing stands in."""
SEQUENCE_PARALLEL = "sequence_parallel"


def run_on_cpu() -> None:
    """Put all stand-ins in place, unless jobs run on a GPU. It comes before the first import of megatron."""
    if ON_GPU:
        return
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # compiled parts of the package take minutes
    for stand_in in (devices, tensor_types, streams, random_streams, norms, routing, loading):
        stand_in()


def devices() -> None:
    """`cuda` is the CPU."""
    import torch

    torch.cuda.current_device = lambda: torch.device(CPU)
    for name in ("tensor", "empty", "zeros", "ones", "full", "arange", "rand", "randn"):
        setattr(torch, name, _on_cpu(getattr(torch, name)))
    torch.Tensor.cuda = lambda self, *args, **kwargs: self


def _on_cpu(factory: Callable[..., Any]) -> Callable[..., Any]:
    def make(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("pin_memory", None)  # there is no allocator of pinned memory
        if str(kwargs.get("device", CPU)).startswith("cuda"):
            kwargs["device"] = CPU
        return factory(*args, **kwargs)

    return make


def tensor_types() -> None:
    """Tensors say that they are on the GPU where the optimizers ask: those refuse others."""
    import torch

    original = torch.Tensor.type

    def type_(self: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if dtype is not None:
            return original(self, dtype, *args, **kwargs)
        kind = original(self).removeprefix("torch.").removeprefix("cuda.")  # it may be said already
        return f"torch.cuda.{kind}"

    torch.Tensor.type = type_


class Stream:
    """A stream, or an event, on which everything has been done already."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def wait_stream(self, other: Any) -> None:
        """Nothing is under way."""

    def record_event(self, event: Any = None) -> Stream:
        """An event that has happened."""
        return Stream()

    def synchronize(self) -> None:
        """Nothing is under way."""


def streams() -> None:
    """There is one order of things."""
    import torch

    only = Stream()
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.Stream = torch.cuda.Event = Stream
    torch.cuda.current_stream = torch.cuda.default_stream = lambda device=None: only
    torch.cuda.stream = lambda stream: contextlib.nullcontext()


def random_streams() -> None:
    """The generators of the GPU are the one of the CPU, so that Megatron's named streams are real."""
    import torch
    from megatron.core.tensor_parallel import random

    torch.cuda.manual_seed = torch.manual_seed
    torch.cuda.get_rng_state = torch.cuda.random.get_rng_state = lambda device=None: (
        torch.get_rng_state()
    )
    torch.cuda.set_rng_state = lambda state, device=None: torch.set_rng_state(state)
    random._get_cuda_rng_state = lambda device=None, clone=False, graph_safe=False: (
        torch.get_rng_state()
    )
    random._set_cuda_rng_state = lambda state, device=-1, graph_safe=False: torch.set_rng_state(
        state
    )


def norms() -> None:
    """torch's norms may stand where the activations are cut along the sequence.

    They mark their parameters as those of Transformer Engine and Apex do, so that gradients are summed over tp.
    """
    from megatron.core.transformer.torch_norm import WrappedTorchNorm

    original = WrappedTorchNorm.__new__

    def new(cls: Any, config: Any, *args: Any, **kwargs: Any) -> Any:
        split = config.sequence_parallel
        config.sequence_parallel = False
        try:
            norm = original(cls, config, *args, **kwargs)
        finally:
            config.sequence_parallel = split
        for parameter in norm.parameters():
            setattr(parameter, SEQUENCE_PARALLEL, split)
        return norm

    WrappedTorchNorm.__new__ = new


def routing() -> None:
    """The dispatcher of experts has its counts on the CPU: gloo wants them as plain numbers."""
    from megatron.core.transformer.moe import moe_utils, token_dispatcher

    moe_utils.te_general_gemm = None
    original = moe_utils.maybe_move_tensor_to_cpu

    def moved(tensor: Any, as_numpy: bool = False, record_stream: bool = False) -> Any:
        found = original(tensor, as_numpy=as_numpy, record_stream=False)
        return found.numpy() if as_numpy and hasattr(found, "numpy") else found

    token_dispatcher.maybe_move_tensor_to_cpu = moved


def loading() -> None:
    """The distributed optimizer loads the state of torch's Adam, which counts steps in each state, and not in its groups."""
    import torch
    from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer

    sharded, put = (
        DistributedOptimizer.sharded_state_dict,
        DistributedOptimizer._set_main_param_and_optimizer_states,
    )

    def with_states(self: Any, model: Any, is_loading: bool = False, **more: Any) -> Any:
        held = [p for group in self.optimizer.param_groups for p in group["params"]]
        for parameter in held if is_loading and not self.optimizer.state else ():
            moments = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
            self.optimizer.state[parameter] = {"step": torch.tensor(0.0), **moments}
        return sharded(self, model, is_loading, **more)

    def without_count(self: Any, parameter: Any, tensors: dict[str, Any]) -> None:
        group, place = self.model_param_group_index_map[parameter]
        state = self.optimizer.state[self.optimizer.param_groups[group]["params"][place]]
        state["step"] = state[
            "step"
        ].clone()  # all states were given one tensor, which each update counts on
        put(self, parameter, {"step": state["step"]} | tensors)

    DistributedOptimizer.sharded_state_dict = with_states
    DistributedOptimizer._set_main_param_and_optimizer_states = without_count
