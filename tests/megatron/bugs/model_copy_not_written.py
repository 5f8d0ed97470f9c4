"""The float32 main copy is updated, and the parameters that the model uses are not.

Source: TTrace 9, Megatron-LM issue 663, without the distributed optimizer.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2,bf16,untied"
FOUND = ("model_copy_is_the_main_copy", 1, (1,), "decoder.layers.2.input_layernorm.weight")


def put_in() -> None:
    """The last stage does not copy."""
    from megatron.core import parallel_state
    from megatron.core.optimizer.optimizer import Float16OptimizerWithFloat16Params as Optimizer

    original = Optimizer._copy_main_params_to_model_params

    def copy(self: Any) -> None:
        if not parallel_state.is_pipeline_last_stage():
            original(self)

    Optimizer._copy_main_params_to_model_params = copy
