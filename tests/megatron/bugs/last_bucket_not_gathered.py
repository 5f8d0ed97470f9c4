"""With parameters that are gathered during the next forward pass, the last bucket is never gathered.

Source: TTrace 9's class (parameters are not updated), in the buckets of the distributed optimizer.
"""

from __future__ import annotations

LAYOUT = "dp=2,zero,overlap,gather,bf16"
FOUND = ("copies_agree", 2, (0, 1), "decoder.layers.2.mlp.linear_fc2.weight")


def put_in() -> None:
    """Of the last bucket the gather counts as begun."""
    from megatron.core.distributed import param_and_grad_buffer

    group = param_and_grad_buffer._ParamAndGradBucketGroup
    gather = group.start_param_sync

    def begin(self: object, *args: object, **kwargs: object) -> None:
        if self.next_param_gather_bucket_group is None:
            self.param_gather_dispatched = True
        else:
            gather(self, *args, **kwargs)

    group.start_param_sync = begin
