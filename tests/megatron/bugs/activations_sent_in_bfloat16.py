"""A float32 job sends activations from stage to stage in bfloat16, so that all later layers read rounded numbers.

Source: `pipeline_dtype` of megatron-core is set apart from `params_dtype`; here the message alone is rounded.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2"
FOUND = None


def put_in() -> None:
    """What sends the output of a stage rounds it first."""
    from megatron.core import parallel_state
    from megatron.core.pipeline_parallel.p2p_communication import P2PCommunicator

    for name in ("send_forward", "send_forward_recv_backward"):
        original = getattr(P2PCommunicator, name)

        def send(self: Any, output: Any, *given: Any, sends: Any = original, **options: Any) -> Any:
            if not parallel_state.is_pipeline_last_stage():
                several = isinstance(output, list)
                tensors = output if several else [output]
                rounded = [each.bfloat16().to(each.dtype) for each in tensors]
                output = rounded if several else rounded[0]
            return sends(self, output, *given, **options)

        setattr(P2PCommunicator, name, send)
