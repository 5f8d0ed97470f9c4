"""The scale of evaluated inputs is compared with that of the training."""

import pytest
import torch
from torch import nn

from tspec.runtime.live.samples.scales import ENOUGH, InputScales

torch.manual_seed(0)
DATA = torch.randn(64, 4)


class _Run:
    """Passes through one model."""

    def __init__(self) -> None:
        self.model = nn.Linear(4, 2)
        self._read = InputScales(lambda module: module is self.model).scale_of_inputs

    def trains(self, *inputs: object, times: int = ENOUGH) -> list[float | None]:
        self.model.train()
        return [self._read(self.model, inputs) for _ in range(times)]

    @torch.no_grad()
    def evaluates(self, *inputs: object) -> float | None:
        self.model.eval()
        return self._read(self.model, inputs)


def test_the_nearest_evaluation_counts_from_the_second_on() -> None:
    run = _Run()
    assert run.evaluates(DATA) is None
    assert set(run.trains(DATA)) == {None}
    assert run.evaluates(5 * DATA) is None
    run.trains(2 * DATA, times=1)
    assert run.evaluates(10 * DATA) == pytest.approx(5.0)
    assert run.evaluates(DATA / 3) == pytest.approx(3.0)
    assert run.evaluates(4 * DATA) == pytest.approx(2.0)
    assert run.evaluates(1.5 * DATA) == 1.0


def test_inputs_that_cannot_be_compared_are_not_read() -> None:
    run = _Run()
    for _ in range(2):
        run.trains(torch.arange(4), DATA)
        for given in (DATA[:, :2], torch.zeros(64, 4), DATA[:8], torch.arange(64.0)):
            assert run.evaluates(given) is None
    assert run.evaluates(DATA.clone().requires_grad_()) is None
    assert run.evaluates(DATA) is None
    run.trains(DATA)
    assert run.evaluates(DATA) == 1.0
