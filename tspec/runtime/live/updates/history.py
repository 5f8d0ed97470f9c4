"""What happens to parameters and gradients from one update of an optimizer to the next.

Each object that is held here answers one question, such as which gradients were used twice. The
mechanisms notify it of passes, clears and updates. An optimizer is known by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch

from tspec.runtime.live.entities.optimizers import OptimizerSubjects, held_by
from tspec.runtime.live.models import ModelRegistry
from tspec.runtime.live.ranks import RankTopology
from tspec.runtime.live.updates.beginnings import AverageBeginnings, may_be_average
from tspec.runtime.live.updates.copied import CopiedParameters
from tspec.runtime.live.updates.doubled import DoubledUpdates
from tspec.runtime.live.updates.dropped import DroppedPasses
from tspec.runtime.live.updates.elsewhere import ElsewhereUpdatedParameters
from tspec.runtime.live.updates.foreign import ForeignGradients
from tspec.runtime.live.updates.gradients import UpdatedWithGradient
from tspec.runtime.live.updates.interpolated import InterpolatedParameters
from tspec.runtime.live.updates.projected import ProjectedParameters, ReadFeatures
from tspec.runtime.live.updates.reused import ReusedGradients
from tspec.runtime.live.updates.scaled import GradientFactors
from tspec.runtime.live.updates.uncalled import UncalledModels


class UpdateHistory:
    """The updates of all optimizers, as far as later updates and rules ask about them."""

    def __init__(
        self,
        models: ModelRegistry,
        optimizers: OptimizerSubjects,
        ranks: RankTopology,
        features: ReadFeatures,
    ) -> None:
        self._models = models
        self._optimizers = optimizers
        self._ranks = ranks
        self.projected = ProjectedParameters(features)
        self.interpolated = InterpolatedParameters()
        self.elsewhere = ElsewhereUpdatedParameters(features)
        self.copied = CopiedParameters(features)
        self.reused = ReusedGradients(features)
        self.doubled = DoubledUpdates()
        self.scaled = GradientFactors(first=lambda: ranks.world > 1)
        self.dropped = DroppedPasses()
        self.foreign = ForeignGradients()
        self.beginnings = AverageBeginnings()
        self.uncalled = UncalledModels()
        self.with_gradient = UpdatedWithGradient()

    @property
    def columns(self) -> Mapping[str, Callable[[Sequence[torch.Tensor]], Sequence[Any]]]:
        """Fields of parameters that say how they change besides their optimizer's updates."""
        return {
            "projected": lambda them: [each in self.projected for each in them],
            "interpolated": self.interpolated.of,
            "updated_elsewhere": lambda them: [self._elsewhere(each) for each in them],
            "copied": lambda them: [each in self.copied for each in them],
            "averaged": lambda them: [each in self.beginnings.moved for each in them],
            "had_gradient": lambda them: [each in self.with_gradient for each in them],
            "updates_without_gradient": self.with_gradient.updates_without,
        }

    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions that fields of updates call, by name."""
        return {
            "reused": self._reused,
            "doubled": self._doubled,
            "scaled": self._scaled,
            "own_gradients": lambda optimizer, result: self._sum_of_gradients(optimizer, 0),
            "used_gradients": lambda optimizer, result: self._sum_of_gradients(optimizer, 1),
            "dropped": self._dropped,
            "foreign": self._foreign,
            "unrelated_averages": self._unrelated_averages,
        }

    def forget(self, optimizers: Collection[int]) -> None:
        """These optimizers are gone."""
        for each in (
            self.projected,
            self.interpolated,
            self.elsewhere,
            self.reused,
            self.doubled,
            self.scaled,
            self.dropped,
            self.foreign,
            self.beginnings,
            self.with_gradient,
        ):
            each.forget(optimizers)

    def compare_unheld(self, optimizer: int, copies_of: Callable[[str], Collection[str]]) -> None:
        """An update begins: check parameters that no optimizer of this process updates.

        They change if another rank updates them, and stay equal to their source if weights are
        copied to them. `copies_of` gives the names of a parameter's copies in other models.
        """
        elsewhere = self._ranks.world > 1 and self.elsewhere.is_due(optimizer)
        copied = self.copied.is_due()
        if not elsewhere and not copied:
            return
        known = self._models.parameters()
        unheld = {
            name: one.tensor
            for name, one in known.items()
            if not self._optimizers.updates(one.tensor)
        }
        if elsewhere:
            asked_for = [each for each in unheld.values() if each.requires_grad]
            self.elsewhere.before_update(
                optimizer, [each for each in asked_for if each.grad is not None]
            )
        if copied:
            trained = {name: one for name, one in known.items() if name not in unheld}
            loose = [one.tensor for one in trained.values() if one.module is None]
            pairs = [
                (
                    each,
                    [trained[copy].tensor for copy in copies_of(name) if copy in trained]
                    or [one for one in loose if one.shape == each.shape],
                )
                for name, each in unheld.items()
            ]
            self.copied.before_update([(each, copies) for each, copies in pairs if copies])

    def find_uncalled(self) -> None:
        """An update begins: models whose parameters have changed since the last one become known, also if
        the loop has not called them.
        """
        if self.uncalled.is_due():
            for parameter in self.uncalled.changed(self._models.unknown()):
                self._models.holding(parameter)

    def compare_beginnings(
        self, optimizer: Any, copies_of: Callable[[str], Collection[str]]
    ) -> None:
        """An update begins: compare averages that have moved since the last one with the weights that
        they follow.

        `copies_of` gives the names of a parameter's copies, in other models and in the same one.
        """
        number = self._optimizers.numbered.number(optimizer)
        if not self.beginnings.is_due(number):
            return
        known = self._models.parameters()
        held = set(map(id, held_by(optimizer)))
        pairs = []
        for name, one in known.items():
            if may_be_average(one.tensor) and not self._optimizers.updates(one.tensor):
                copies = (known[each].tensor for each in copies_of(name) if each in known)
                pairs.append((one.tensor, [each for each in copies if id(each) in held]))
        self.beginnings.before_update(number, [pair for pair in pairs if pair[1]])

    def sample_gradients(self) -> None:
        """A backward pass ended: keep samples of its gradients that a checked update may use."""
        for optimizer in self._optimizers.things().values():
            number = self._optimizers.numbered.number(optimizer)
            if self.scaled.is_due(number):
                self.scaled.after_backward(number, held_by(optimizer))

    def count_pass(self) -> None:
        """A backward pass ended: note the gradients that exist, for optimizers whose next update is
        checked.
        """
        for optimizer in self._optimizers.things().values():
            number = self._optimizers.numbered.number(optimizer)
            if self.dropped.is_due(number):
                self.dropped.after_backward(number, held_by(optimizer))

    def pass_begins(self) -> None:
        """A backward pass begins: note the gradients that exist, in a job of several optimizers whose next
        updates are checked.
        """
        for number, held in self._of_several():
            self.foreign.before_backward(number, held)

    def pass_ends(self) -> None:
        """The pass is over: note which optimizers it has reached."""
        self.foreign.after_backward(self._of_several())

    def _of_several(self) -> list[tuple[int, Sequence[torch.Tensor]]]:
        """The numbers of several optimizers whose next update is checked, and what they hold."""
        optimizers = list(self._optimizers.things().values())
        if len(optimizers) < 2:
            return []
        numbered = [(self._optimizers.numbered.number(each), each) for each in optimizers]
        return [(number, held_by(each)) for number, each in numbered if self.foreign.is_due(number)]

    def _elsewhere(self, parameter: torch.Tensor) -> Any:
        """True if another rank is known to update the parameter."""
        return self._ranks.world > 1 and self.elsewhere.of(parameter)

    def _reused(self, optimizer: Any, result: Any) -> list[torch.Tensor] | None:
        """The parameters whose gradients an update that returned `result` has used again."""
        number = self._optimizers.numbered.number(optimizer)
        return self.reused.of(number, held_by(optimizer))

    def _doubled(self, optimizer: Any, result: Any) -> list[torch.Tensor] | None:
        """The parameters that the update with this `result` moved by a gradient that another
        optimizer had used.
        """
        return self.doubled.of(self._optimizers.numbered.number(optimizer))

    def _scaled(self, optimizer: Any, result: Any) -> float:
        """The factor that scaled the gradients of the update that returned `result`."""
        return self.scaled.of(self._optimizers.numbered.number(optimizer))

    def _sum_of_gradients(self, optimizer: Any, which: int) -> float | None:
        """The sum of sampled gradients as this rank computed them, 0, or as its latest update used them, 1."""
        sums = self.scaled.sums(self._optimizers.numbered.number(optimizer))
        return None if sums is None else sums[which]

    def _unrelated_averages(self, optimizer: Any, result: Any) -> list[torch.Tensor]:
        """The averages that began apart from their weights, known from the update that returned
        `result`.
        """
        return self.beginnings.of(self._optimizers.numbered.number(optimizer))

    def _foreign(self, optimizer: Any, result: Any) -> int | None:
        """The number of passes of other optimizers that the update with this `result` has used."""
        return self.foreign.of(self._optimizers.numbered.number(optimizer))

    def _dropped(self, optimizer: Any, result: Any) -> int | None:
        """The number of passes that were dropped before the update with this `result`."""
        return self.dropped.of(self._optimizers.numbered.number(optimizer))
