"""Backward passes: `Tensor.backward` goes through `torch.autograd.backward` too.

One within another is a part of it: a reentrant checkpoint makes one for each part that it computes again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tspec.runtime.live.activities import Backward
from tspec.runtime.live.convert import tensors_in
from tspec.runtime.live.fields import first_tensor
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.mechanisms.received import SentUpdates
from tspec.runtime.live.watched import Listener, Role

BACKWARD = "torch.autograd.backward"


class BackwardListener(Listener):
    """Follows backward passes."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job
        self._scales = job.spec.computes("scaled", "own_gradients", "used_gradients")
        self._drops = job.spec.computes("dropped")
        self._mixes = job.spec.computes("foreign")
        self._sent = SentUpdates(job)

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """A backward pass begins at its loss. True if no other backward pass encloses it."""
        if torch._C._current_graph_task_id() != -1:
            return False
        loss = first_tensor(args[0] if args else kwargs.get("tensors"))
        gradients = tensors_in(args[1] if len(args) > 1 else kwargs.get("grad_tensors"))
        # A pipeline stage passes back from an activation, with the gradient that it received.
        if loss is not None and (not gradients or loss.numel() == 1):
            self._job.known.loss_is(loss)
        self._job.state.updates.reused.before_backward()
        self._job.state.updates.dropped.before_backward()
        self._job.state.receive_buffers.pass_begins()
        if self._mixes:
            self._job.state.updates.pass_begins()
        self._job.do(Backward(microbatch=self._job.chunk))
        self._job.taken_up(gradients=gradients)
        return True

    def ended(self, token: Any) -> None:
        """The gradients are complete."""
        if token:
            self._job.state.updates.reused.after_backward()
            self._job.state.updates.with_gradient.after_backward()
            if self._scales:
                self._job.state.updates.sample_gradients()
            if self._drops:
                self._job.state.updates.count_pass()
            if self._mixes:
                self._job.state.updates.pass_ends()
            self._job.do(Backward(ended=True))
            self._sent.pass_ended()


def install(job: FollowedJob) -> None:
    """Follow backward passes."""
    role = Role("backward pass", BackwardListener(job), path=BACKWARD)
    job.functions.watch_function(torch.autograd.backward, role)
