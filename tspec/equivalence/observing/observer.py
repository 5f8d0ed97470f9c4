"""The sink of one process: passes each edge of the live source to the recorders of its subject."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from tspec.equivalence.observing.dropout import without_dropout
from tspec.equivalence.observing.exact_checks import ModelCopies, Recomputations
from tspec.equivalence.observing.generated_inputs import GeneratedInputs
from tspec.equivalence.observing.initial_weights import InitialWeights
from tspec.equivalence.observing.module_calls import ModuleCalls, given_to, tensors_of
from tspec.equivalence.observing.optimizers import Optimizers
from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.observing.perturber import is_forward
from tspec.equivalence.observing.recorder import TensorRecorder
from tspec.equivalence.observing.update_sizes import UpdateSizes
from tspec.equivalence.observing.updated_parameters import UpdatedParameters
from tspec.equivalence.progress import Progress
from tspec.equivalence.recording import Recording, TensorName, write
from tspec.runtime.edges import LoopSpan, StateSource, WatchedCall


class Observer:
    """The sink of one process. It writes its recording when the steps are over, and ends the
    script.
    """

    def __init__(self, orders: Orders, folder: Path, rank: int) -> None:
        self._orders = orders
        self._folder = folder
        self._progress = Progress(folder, rank)
        self._recorder = TensorRecorder(orders, self._progress)
        self._sizes = UpdateSizes(orders, self._recorder)
        self._weights = InitialWeights(orders, self._recorder, self._sizes)
        self._inputs = GeneratedInputs(orders)
        self._calls = ModuleCalls(orders, self._recorder)
        self._optimizers = Optimizers(orders, self._recorder, self._sizes)
        self._parameters = UpdatedParameters(self._recorder, self._sizes)
        self._copies = ModelCopies(orders)
        self._recomputations = Recomputations(orders)
        self._lines: dict[str, str] = {}
        self._scheduled = False
        """The losses are those of a pipeline schedule, which may free them before the backward
        pass.
        """
        self._over = False

    @contextmanager
    def watching_dropout(self) -> Iterator[None]:
        """Within the block dropout is off, unless the orders leave it on."""
        if self._orders.drops:
            yield
            return
        with without_dropout(self._calls.dropped):
            yield

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        """A module, a backward pass or an update begins."""
        if self._over:
            return
        match call.event:
            case "forward":
                self._weights.set(source)
                self._inputs.give(call)
                self._recomputations.begins(call)
                self._calls.begins(call)
            case "target":
                self._inputs.give(call)
                self._record_target(call)
            case "backward" if not self._scheduled:
                self._note_line("losses", call)
                self._record_loss(call, call.fields.get("loss"))
            case "clip":
                self._optimizers.clips(call, source)
            case "update":
                self._weights.update_begins(source)
                self._note_line("params", call)
                self._parameters.gathered(source, all_are=True)
                self._optimizers.begins_megatrons(call, source)
            case "optimizer.step":
                self._weights.update_begins(source)
                self._note_line("params", call)
                self._optimizers.begins(call, source)
            case "scaled_step":
                self._optimizers.scaled_begins()

    def end(self, call: WatchedCall, source: StateSource) -> None:
        """A module, a schedule's forward pass, or the computation of a norm has returned."""
        if self._over:
            return
        match call.event:
            case "forward":
                self._recomputations.ends(call)
                self._calls.ends(call)
            case "forward_step":
                self._parameters.gathered(source)
                self._scheduled = True
                self._note_line("losses", call)
                self._record_loss(call, next(iter(tensors_of(call.fields.get("made"))), None))
            case "chunk_loss":
                self._scheduled = True
                self._note_line("losses", call)
                self._record_loss(call, call.fields.get("loss"))
            case "clip":
                self._note_line("gradient_norms", call)
                self._optimizers.note_norm(call)
            case "update":
                self._note_line("gradient_norms", call)
                self._optimizers.note_norm(call)
                self._optimizers.record_norms(call)
                self._optimizers.ends_megatrons(call)
                self._parameters.update_ends(call.context.step, source)
                self._copies.update_ends(call.context.step, source)
            case "unscaled":
                self._optimizers.unscaled(call)
            case "scaled_step":
                self._optimizers.scaled_ends(call)

    def boundary(self, span: LoopSpan, index: int, source: StateSource) -> None:
        """A step closes. After the last one the script ends, on all ranks at the same place."""
        if span != "step" or index < 2 or self._over:
            return
        self._close_step(index - 1, source)
        if index > self._orders.steps:
            self._finish(source)
            raise SystemExit(0)

    def finish(self, source: StateSource) -> None:
        """The script ended by itself."""
        if not self._over:
            if source.context.step:
                self._close_step(source.context.step, source)
            self._finish(source)

    def _note_line(self, kind: str, call: WatchedCall) -> None:
        """Note the line of the script that first made tensors of a kind."""
        if call.location is not None:
            self._lines.setdefault(kind, f"{call.location.file}:{call.location.line}")

    def _record_loss(self, call: WatchedCall, loss: Any) -> None:
        if isinstance(loss, Tensor) and loss.numel() == 1:  # else the output of a stage
            self._recorder.record(self._recorder.name("losses", "loss", call), loss)

    def _record_target(self, call: WatchedCall) -> None:
        """Record the target of a loss that was generated. Others are not followed."""
        for name, target in given_to(call).items() if is_forward() else ():
            if name in self._orders.inputs:
                self._recorder.record(self._recorder.name("inputs", name, call), target)

    def _close_step(self, step: int, source: StateSource) -> None:
        self._optimizers.record_states(source, step)  # parameters are updated from them
        self._parameters.end_step(step, source)
        self._copies.end_step(step, source)
        self._recomputations.end_step()
        buffers = source.fields("buffer", "data").items()
        self._recorder.record_all(
            {TensorName("buffers", name, step): value for name, value in buffers}
        )

    def _finish(self, source: StateSource) -> None:
        self._over = True
        recording = Recording(
            tensors=self._recorder.tensors,
            filled=self._weights.filled,
            modules=self._calls.described(source),
            parts=self._recorder.parts,
            sketched=self._recorder.sketched,
            elsewhere=self._optimizers.elsewhere(source),
            lines=self._lines,
            generated=self._inputs.shapes,
            skipped=frozenset(self._optimizers.skipped),
            ungathered=self._parameters.ungathered,
            inexact=self._copies.differing | self._recomputations.differing,
            undropped=frozenset(self._calls.undropped),
            drawing=frozenset(self._calls.drawing),
        )
        write(self._folder, source.rank, recording)
        self._progress.reached("its end")
        self._progress.close()
