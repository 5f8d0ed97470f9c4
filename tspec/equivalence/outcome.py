"""The result of a comparison: what differs, what was left out, and the code at fault."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from tspec.equivalence.blame import Blame, RunCalls, blamed, everywhere, first_blamed
from tspec.equivalence.clipping import clipped, equal_but_for_epsilon
from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.gradient_norms import NormComparison
from tspec.equivalence.losses import LossScale
from tspec.equivalence.missing_passes import MissingPass
from tspec.equivalence.recording import SkippedUpdate, TensorName


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a comparison.

    `unplaced` are tensors of the reference that have no place in the layout. `uneven` are tensors
    that cannot be cut into equal shards, each with the reason. `overflowed` are gradients that are
    not finite, each with the update that both sides skipped for it. `ungathered` are parameters
    that ranks gather after the last step. `drilled` are tensors that were
    recorded in full in a second run, since their sketches were wrong. `scale` has the factors of
    losses and of gradients of activations. `summands` are gradients of activations that differ from
    rank to rank, where the layout does not say whether ranks hold all of them or summands.
    `missing_passes` are backward passes that ranks of the candidate did not make. `norms` are norms
    of gradients that were compared with the candidate's own gradients. `undropped` are modules in
    which dropout was switched off on a side, and `drawing` those whose forward passes drew random
    numbers. `steps_without_change` is the number of steps if no parameter of the reference changed
    in them; else 0.
    """

    comparisons: tuple[TensorComparison, ...]
    faults: tuple[Fault, ...]
    unplaced: tuple[TensorName, ...]
    drilled: tuple[TensorName, ...] = ()
    calls: RunCalls = field(default_factory=RunCalls)
    uneven: Mapping[TensorName, str] = field(default_factory=dict)
    overflowed: Mapping[TensorName, SkippedUpdate] = field(default_factory=dict)
    ungathered: frozenset[TensorName] = frozenset()
    scale: LossScale = field(default_factory=LossScale)
    summands: frozenset[TensorName] = frozenset()
    missing_passes: tuple[MissingPass, ...] = ()
    norms: tuple[NormComparison, ...] = ()
    undropped: tuple[str, ...] = ()
    drawing: tuple[str, ...] = ()
    steps_without_change: int = 0

    @property
    def wrong(self) -> tuple[TensorComparison, ...]:
        """The tensors that differ by more than is tolerated, the worst first."""
        found = [each for each in self.comparisons if each.differs]
        return tuple(sorted(found, key=lambda each: (-each.times, each.order)))

    @property
    def first(self) -> TensorComparison | None:
        """The first wrong tensor in the order of the reference's run.

        Gradients clipped by a wrong norm do not count.
        """
        clipped = self.clipped
        wrong = (each for each in self.wrong if each.name not in clipped)
        return min(wrong, key=lambda each: each.order, default=None)

    @property
    def clipped(self) -> Set[TensorName]:
        """Gradients of parameters that are off by the factor of a norm that another gradient makes
        wrong, or by the constant that is added to a wrong norm.
        """
        return clipped(self.comparisons, self.faults) | self.equal_but_for_epsilon

    @property
    def equal_but_for_epsilon(self) -> Set[TensorName]:
        """Gradients of parameters that clipping by a wrong norm made equal again, but for a constant."""
        return equal_but_for_epsilon(self.comparisons)

    def is_of_scaled_gradients(self, name: TensorName) -> bool:
        """True for a wrong norm of gradients if it is that of the candidate's own gradients, and
        these are right once clipping has divided them by it. All were off by one factor before.
        """
        norms = [each for each in self.norms if each.name == name]
        if name.kind != "gradient_norms" or not norms:
            return False
        clipped_right = self.equal_but_for_epsilon
        gradients = [
            each
            for each in self.comparisons
            if (each.name.kind, each.name.step) == ("param_grads", name.step)
        ]
        return (
            bool(gradients)
            and not any(each.differs for each in norms)
            and not any(each.differs and each.name not in clipped_right for each in gradients)
        )

    @property
    def judged(self) -> frozenset[tuple[str, str]]:
        """Kinds and names of all tensors that were compared."""
        return frozenset((each.name.kind, each.name.name) for each in self.comparisons)

    @property
    def telling(self) -> frozenset[tuple[str, str]]:
        """Kind and name of tensors in which an error would be visible.

        The gradient of a bias before a batch norm, for example, is round-off alone.
        """
        return frozenset(
            (each.name.kind, each.name.name) for each in self.comparisons if each.tells
        )

    def maker(self, name: TensorName) -> Blame:
        """The code that made a tensor, be it at fault or not."""
        return blamed(name, self.calls, self.judged)

    def missing_pass(self, name: TensorName) -> MissingPass | None:
        """The backward pass that was not made and would have made a tensor."""
        return next((each for each in self.missing_passes if name in each.tensors), None)

    @property
    def earliest(self) -> TensorName | None:
        """The first wrong tensor in the order of the reference's run: it differs, or its shards do not fit together."""
        first = min(self._wrong_or_misfit, key=lambda each: each.order, default=None)
        return None if first is None else first.name

    @property
    def _wrong_or_misfit(self) -> tuple[TensorComparison | Fault, ...]:
        """Tensors that differ and shards that do not fit together.

        Gradients clipped by a wrong norm do not count, nor do faults of the layout, which are no
        faults of the job.
        """
        clipped = self.clipped
        faults = (each for each in self.faults if each.fault.kind != "layout")
        found: tuple[TensorComparison | Fault, ...] = (*self.wrong, *faults)
        return tuple(each for each in found if each.name not in clipped)

    @property
    def blame(self) -> Blame | None:
        """The code at fault: all tensors before the first wrong one are right.

        None if those were not compared.
        """
        first = self.earliest
        if first is None:
            return None
        missing = self.missing_pass(first)
        if missing is not None:
            return missing.blame
        if self.is_of_scaled_gradients(first):
            return everywhere(first, self.calls)
        kinds = {kind for kind, _ in self.judged}
        of_step = (first.kind, first.step)
        names = (each.name for each in self._wrong_or_misfit)
        off = {each.name for each in names if (each.kind, each.step) == of_step}
        telling = {
            each.name.name
            for each in self.comparisons
            if each.tells and (each.name.kind, each.name.step) == of_step
        }
        if len(off) > 1 and telling <= off:
            if first.is_first_weight:
                return everywhere(first, self.calls)
            if first.kind == "param_grads":
                return everywhere(first, self.calls) if "output_grads" in kinds else None
        return first_blamed(first, self.calls, self.judged, kinds)
