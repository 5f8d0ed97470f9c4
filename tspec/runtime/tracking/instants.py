"""The instants at which rules read state, and what instants share: samples, structure, a forward pass."""

from __future__ import annotations

from collections.abc import Hashable

from tspec.runtime.columns import Structure
from tspec.runtime.edges import Context, StateSource, WatchedCall
from tspec.runtime.instant import StateInstant
from tspec.runtime.samples import SampleStore


class InstantFactory:
    """Makes the instants of one rank. `samples` keeps history for a source that does not."""

    def __init__(self, samples: SampleStore | None) -> None:
        self.samples = samples
        self._structure_of: tuple[int, Hashable, Structure] = (0, None, Structure())
        """A step, the source's version when it opened, and the structure of models that has been read."""
        self._pass: tuple[int, StateInstant] | None = None
        """The outermost forward call that runs, and an instant in it."""

    def instant(self, source: StateSource, context: Context) -> StateInstant:
        """The current instant. The structure of models is read once in a step whose `source.version` differs from the
        last step's, and at every instant before the first step.
        """
        now = StateInstant(source, context, self.samples)
        if context.step > 0:
            if context.step != self._structure_of[0]:
                self._step_opens(context.step, source.version)
            now.structure = self._structure_of[2]
        return now

    def _step_opens(self, step: int, version: Hashable) -> None:
        _, before, structure = self._structure_of
        self._structure_of = (step, version, structure if version == before else Structure())

    def look(self, source: StateSource) -> None:
        """Keep the samples of subjects created since the last call."""
        if self.samples is not None:
            self.samples.look(self.instant(source, source.context))

    def look_passing(self, source: StateSource) -> None:
        """The same of batches and messages alone."""
        if self.samples is not None:
            self.samples.look_passing(self.instant(source, source.context))

    def in_forward(self, call: WatchedCall, now: StateInstant) -> None:
        """Let the instants within one forward pass share the values without tensors."""
        outer = call if call.event == "forward" else None
        inside = False
        around = call.parent
        while around is not None:
            if around.event == "forward":
                outer, inside = around, True
            around = around.parent
        if outer is None or (inside and outer.end is not None):
            return  # a call may return after the pass that it began in
        if inside and self._pass is not None and self._pass[0] == outer.id:
            now.within(self._pass[1])
        elif inside or call.end is None:
            self._pass = (outer.id, now)

    def clear(self) -> None:
        """Steps are left out: forget the forward pass that runs, and the samples of batches and
        messages.
        """
        self._pass = None
        if self.samples is not None:
            self.samples.forget_passing()
