"""Records parameters after each step. Some reach a rank only in the next forward pass."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from tspec.equivalence.observing.held import copies, held_here
from tspec.equivalence.observing.recorder import TensorRecorder
from tspec.equivalence.observing.update_sizes import UpdateSizes
from tspec.equivalence.recording import TensorName
from tspec.runtime.edges import StateSource


class UpdatedParameters:
    """Records the parameters of a step: at its end, or once the shards of other ranks have been gathered.

    Under Megatron's `overlap_param_gather` a rank has only the shard that it updates at the end of
    the step. The next forward pass waits for the others, bucket by bucket.
    """

    def __init__(self, recorder: TensorRecorder, sizes: UpdateSizes) -> None:
        self._recorder = recorder
        self._sizes = sizes
        self._waiting: dict[str, int] = {}
        """Parameter -> the step whose update has not reached this rank in full."""
        self._copies: set[str] = set()
        """Parameters that only optimizers hold, as copies or shards of the model's. The model has what they are updated to."""

    @property
    def ungathered(self) -> frozenset[TensorName]:
        """The parameters that were not recorded after the last step."""
        return frozenset(TensorName("params", name, of) for name, of in self._waiting.items())

    def update_ends(self, step: int, source: StateSource) -> None:
        """An optimizer of Megatron's has ended its step. Its groups may be gone when the step closes."""
        self._note_copies(source)
        self._waiting = {name: step for name, is_here in _gathered(source) if not is_here}

    def gathered(self, source: StateSource, all_are: bool = False) -> None:
        """A forward pass has waited for some parameters; `all_are` if it has for all that it reads."""
        if not self._waiting:
            return
        here = (
            self._waiting if all_are else {name for name, is_here in _gathered(source) if is_here}
        )
        reached = {name: of for name, of in self._waiting.items() if name in here}
        self._waiting = {name: of for name, of in self._waiting.items() if name not in here}
        for step in set(reached.values()):
            self._record(source, step, [name for name, of in reached.items() if of == step])

    def end_step(self, step: int, source: StateSource) -> None:
        """A step closes."""
        self.gathered(source)
        self._note_copies(source)
        left_out = self._copies.union(self._waiting)
        every = source.fields("parameter", "data")
        self._record(source, step, [name for name in every if name not in left_out])

    def _note_copies(self, source: StateSource) -> None:
        self._copies.update(copy for copy, name in copies(source).items() if copy != name)

    def _record(self, source: StateSource, step: int, names: Iterable[str]) -> None:
        every = source.fields("parameter", "data")
        found = {name: every[name] for name in names if name in every}
        self._recorder.record_all(
            {TensorName("params", name, step): value for name, value in found.items()}
        )
        for name, value in found.items() if self._sizes.are_followed else ():
            local = held_here(value) if isinstance(value, Tensor) else None
            if local is not None:
                self._sizes.is_made(name, step, local)


def _gathered(source: StateSource) -> list[tuple[str, bool]]:
    """The parameters of a distributed optimizer, and whether the shards of other ranks are here."""
    found = source.fields("parameter", "gathered").items()
    return [(name, is_here) for name, is_here in found if isinstance(is_here, bool)]
