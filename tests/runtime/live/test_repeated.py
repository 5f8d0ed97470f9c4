"""Evaluations on the same samples each time are counted, for models that are given nothing else."""

import torch
from torch import nn

from tspec.runtime.live.samples.repeated import PASSES, RepeatedEvaluations

torch.manual_seed(0)
HELD_OUT, OTHERS, TRAINED = torch.randn(3, 16, 4).unbind()


class _Run:
    """Passes of some models; updates are counted by hand."""

    def __init__(self) -> None:
        self.known = RepeatedEvaluations()
        self.copy, self.other = nn.Linear(4, 2), nn.Linear(4, 2)
        self.updates = 0

    def trains(self, data: torch.Tensor = TRAINED) -> None:
        self.known.gives(self.other, [data], self.updates)
        self.updates += 1

    @torch.no_grad()
    def evaluates(self, *batches: torch.Tensor, model: nn.Module | None = None) -> int:
        for batch in batches:
            self.known.gives(model or self.copy, [batch], self.updates)
        return self.known.evaluations(model or self.copy)


def test_evaluations_on_the_same_samples_are_counted() -> None:
    run, counts = _Run(), []
    for _ in range(3):
        run.trains()
        counts.append(run.evaluates(HELD_OUT, OTHERS))
    assert counts == [1, 2, 3]


def test_batches_may_be_cut_elsewhere() -> None:
    run = _Run()
    run.evaluates(HELD_OUT)
    run.trains()
    assert run.evaluates(HELD_OUT[8:], HELD_OUT[:8]) == 2


def test_new_samples_are_those_of_a_target_network() -> None:
    run = _Run()
    run.evaluates(HELD_OUT)
    run.trains()
    assert run.evaluates(OTHERS) == 0


def test_samples_of_the_training_are_those_of_a_teacher() -> None:
    run = _Run()
    for _ in range(3):
        count = run.evaluates(TRAINED)
        run.trains()
    assert count == 0


def test_samples_of_two_models_are_compared() -> None:
    run = _Run()
    for _ in range(3):
        run.trains()
        run.evaluates(HELD_OUT, model=run.other)
        assert run.evaluates(HELD_OUT) == run.known.evaluations(run.other) == 0


def test_as_many_passes_are_looked_at_as_are_allowed() -> None:
    run = _Run()
    for _ in range(PASSES + 5):
        run.trains()
        count = run.evaluates(HELD_OUT)
    assert count == PASSES


def test_inputs_that_cannot_be_told_apart_are_not_counted() -> None:
    run = _Run()
    run.trains()
    assert run.evaluates(HELD_OUT[:4], torch.ones(4)) == 0
