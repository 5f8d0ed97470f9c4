"""The rules of one rank: what their trackers share, and how a rule is evaluated on a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tspec.runtime.call_places import CallPlaces
from tspec.runtime.calls.log import CallLog
from tspec.runtime.generated import Edge, GeneratedModule
from tspec.runtime.postponed import PostponedRules
from tspec.runtime.results import InstanceResult
from tspec.runtime.samples import SampleStore
from tspec.runtime.state import RuleState
from tspec.runtime.tracking.instants import InstantFactory
from tspec.runtime.windows import RuleWindow

Evaluation = Callable[[RuleState, RuleWindow], None]
"""The generated function of a rule."""


class TrackedRules:
    """The rules of one rank, and what the trackers of their windows share.

    `evaluate` runs the function of a rule on a window. `samples` keeps history for a source that
    does not.
    """

    def __init__(
        self,
        program: GeneratedModule,
        evaluate: Callable[[Evaluation, int, RuleWindow], None],
        *,
        samples: SampleStore | None,
        observer: Callable[[InstanceResult], None] | None = None,
    ) -> None:
        self.program = program
        self.evaluate = evaluate
        self.rules = [RuleState(declared, observer=observer) for declared in program.rules]
        self.log = CallLog(program.retention)
        self.places = CallPlaces()
        self.instants = InstantFactory(samples)
        self.postponed = PostponedRules(
            self.rules, lambda number, window: evaluate(program.functions[number], number, window)
        )


class RuleTracker:
    """A tracker of some of the windows. Generated hooks call its methods."""

    def __init__(self, tracked: TrackedRules) -> None:
        self.program = tracked.program
        self.rules = tracked.rules
        self.log = tracked.log
        self.places = tracked.places
        # Bound here, so that a hook that asks for an instant makes one call and not two.
        self.instant = tracked.instants.instant
        self.in_forward = tracked.instants.in_forward
        self._look_passing = tracked.instants.look_passing
        self._postponed = tracked.postponed
        self._evaluate = tracked.evaluate

    def has_group(self, e: Edge, number: int, axes: Sequence[str]) -> bool:
        """True if this rank can have a group on one of a rule's axes. Without axes, a field names
        the group.
        """
        source = e.now.source
        if source.world < 2:
            return False
        return not axes or any(len(e.now.ranks(axis) or ()) > 1 for axis in axes)

    def is_open(self, numbers: Sequence[int]) -> bool:
        """True if a rule of these has a window open in which calls may be looked up."""
        return any(self.rules[number].is_open for number in numbers)

    def run(self, function: Evaluation, number: int, window: RuleWindow) -> None:
        """Evaluate a rule on a window, now or when its values have arrived from a device."""
        rule = self.rules[number]
        if rule.declared.postponed is not None and self._postponed.take(number, window):
            return
        self._evaluate(function, number, window)
        if rule.declared.once and rule.on:
            rule.settles(window)
