"""Hooks in a loop of the user's own, which says itself where its steps are.

hooks.attach(model_chunks, config, optimizer)
try:
    for i in range(1, steps + 1):
        hooks.step_begin(i)
        ...                      # forward and backward passes
        hooks.gradients_ready(i) # only in a loop that never calls finalize_model_grads
        ...                      # the update
        hooks.stepped(i)
finally:
    hooks.close()
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tspec.runtime.install import Installed
from tspec.targets.megatron.configuration import know

if TYPE_CHECKING:
    from torch import nn

    from tspec.runtime.generated import GeneratedModule
    from tspec.runtime.live import LiveJob
    from tspec.runtime.live.watch import WatchSpec

FINALIZE = (
    "megatron.core.distributed.finalize_model_grads",
    "megatron.core.distributed.finalize_model_grads.finalize_model_grads",
)
"""The function, by the names that it has."""


class Attachment:
    """The hooks of one program, attached to at most one loop at a time."""

    def __init__(self, program: GeneratedModule, watch: WatchSpec) -> None:
        self._program = program
        self._watch = watch
        self._installed: Installed | None = None

    def installed(self, **options: Any) -> Installed:
        """The hooks for a `with` block. `options` are those of `Checker`."""
        from tspec.targets.megatron.adapter import Megatron

        return Installed(self._program, self._watch, (Megatron(),), **options)

    def attach(
        self, model_chunks: Sequence[nn.Module], config: Any, optimizer: Any, **options: Any
    ) -> None:
        """Begin to check.

        `model_chunks` are this rank's chunks in order, wrapped or not. `config` is the job's
        `TransformerConfig`; rules read its `num_layers`. `optimizer` is the result of
        `get_megatron_optimizer`. `options` are those of `Checker`. Raises RuntimeError if the hooks
        are attached already.
        """
        if self._installed is not None:
            raise RuntimeError("these hooks are attached already: call close() first")
        installed = self.installed(**options)
        installed.__enter__()
        self._installed = installed

        def learn(job: LiveJob) -> None:
            for chunk in model_chunks:
                job.state.models.add_root(chunk)
            for each in getattr(optimizer, "chained_optimizers", [optimizer]):
                job.state.optimizers.name_parameters(each.optimizer)
            know(job, config)

        self._tell(learn)

    def step_begin(self, i: int) -> None:
        """Step `i` begins, before gradients are cleared. The first is 1, or the one after the
        checkpoint's.
        """
        from tspec.runtime.live.activities import StepAnnotated

        self._tell(lambda job: job.do(StepAnnotated(i)))

    def gradients_ready(self, i: int) -> None:
        """The gradients of step `i` are reduced over all ranks: events on `finalize_model_grads` happen here.

        A loop that calls Megatron's `finalize_model_grads` leaves this out.
        """

        from tspec.runtime.live.watched import Role, WatchedFunction

        def gradients_ready() -> None:
            """Stands for the call: it has no arguments."""

        def happened(job: LiveJob) -> None:
            self._check(job, i)
            for event in job.spec.events:
                path = next((path for path in FINALIZE if path in event.callables), None)
                if path is not None:
                    role = Role(event.name, event=event, path=path)
                    WatchedFunction(gradients_ready).add(role)
                    job.happened(role, {})

        self._tell(happened)

    def stepped(self, i: int) -> None:
        """Step `i` is over: its update was made or skipped."""
        from tspec.runtime.live.activities import Stepped

        def over(job: LiveJob) -> None:
            self._check(job, i)
            job.do(Stepped())

        self._tell(over)

    def close(self) -> None:
        """Stop checking, and print the summary on standard error. An exception that is being raised
        is no normal end.
        """
        installed, self._installed = self._installed, None
        if installed is not None:
            installed.__exit__(*sys.exc_info())

    def _tell(self, action: Callable[[LiveJob], None]) -> None:
        """Tell the job that is followed. Raises RuntimeError if the hooks are not attached."""
        job = None if self._installed is None else self._installed.job
        if job is None:
            raise RuntimeError("these hooks are not attached: call attach() first")
        job.quietly(lambda: action(job))

    def _check(self, job: LiveJob, i: int) -> None:
        if job.place.step != i:
            job.say(
                f"step {i} was told of, but step {job.place.step} is open: call step_begin({i})"
            )
