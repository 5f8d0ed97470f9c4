"""Which passes without a graph are evaluations of held-out tensors, and in which mode they are."""

import pytest
import torch
from torch import nn

from tspec.runtime.live.samples.held_out import EVALUATED, HeldOutSamples
from tspec.runtime.live.samples.rows import SAMPLES


class Run:
    """Epochs of three batches over a tensor, with passes of evaluation in between."""

    def __init__(self, layer: nn.Module | None = None) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(5, 5), nn.Dropout(0.1) if layer is None else layer)
        self.reads = HeldOutSamples(lambda module: module is self.model).answers_as_in_training
        self.data, self.held_out = torch.randn(60, 5), torch.randn(20, 5)

    def train(self, noise: float = 0.0, passes: int = 3) -> None:
        self.model.train()
        for rows in torch.randperm(60).split(60 // passes):
            batch = self.data[rows]
            assert self.reads(self.model, [batch + noise * torch.randn_like(batch)]) is None

    def ask(self, given: torch.Tensor, training: bool = True) -> bool | None:
        self.model.train(training)
        with torch.no_grad():
            return self.reads(self.model, [given])


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        (nn.Dropout(0.1), True),
        (nn.Dropout2d(0.1), True),
        (nn.Dropout(0.0), False),
        (nn.Identity(), False),
        (nn.BatchNorm1d(5), True),
        (nn.BatchNorm1d(5, track_running_stats=False), False),
        (nn.MultiheadAttention(4, 2, dropout=0.1), True),
        (nn.MultiheadAttention(4, 2), False),
        (nn.LSTM(5, 5, 2, dropout=0.1), True),
        (nn.LSTM(5, 5, 2), False),
    ],
)
def test_layers_that_answer_otherwise_in_training_mode(layer: nn.Module, says: bool) -> None:
    run = Run(layer)
    run.train()
    assert run.ask(run.held_out) is None
    run.train()
    assert run.ask(run.held_out) is says


def test_in_evaluation_mode_and_in_parts() -> None:
    run = Run()
    for _ in range(2):
        run.train()
        found = [run.ask(part, training=False) for part in run.held_out.split(10)]
    assert found == [False, False]


def test_a_training_set_that_is_scored_and_a_mixture() -> None:
    run = Run()
    for _ in range(3):
        run.train()
        assert run.ask(run.data) is None
        assert run.ask(torch.cat([run.data[:10], run.held_out[:10]])) is None


def test_the_same_samples_in_a_row_are_asked_on_purpose() -> None:
    run = Run()
    for epoch in range(3):
        run.train()
        assert [run.ask(run.held_out) for _ in range(3)] == [None] * 3, epoch


def test_both_modes_in_turn() -> None:
    run = Run()
    for _ in range(3):
        run.train()
        assert run.ask(run.held_out) is None
        assert run.ask(run.held_out, training=False) is None


def test_samples_that_are_drawn_anew() -> None:
    run = Run()
    for _ in range(3):
        run.train()
        assert run.ask(torch.randn(20, 5)) is None


def test_training_on_samples_that_are_changed_anew() -> None:
    run = Run()
    for _ in range(3):
        run.train(noise=0.1)
        assert run.ask(run.held_out) is None


def test_one_pass_in_between() -> None:
    run = Run()
    for _ in range(3):
        run.train(passes=1)
        assert run.ask(run.held_out) is None


def test_rows_of_a_table_that_are_equal() -> None:
    run = Run()
    run.held_out[0], run.held_out[1] = run.data[0], run.held_out[2]
    for _ in range(2):
        run.train()
        found = run.ask(run.held_out)
    assert found is True


def test_parts_of_a_model_and_small_batches() -> None:
    run = Run()
    for _ in range(2):
        run.train()
        found = run.ask(run.held_out[:4])
        with torch.no_grad():
            assert run.reads(run.model[0], [run.held_out]) is None
    assert found is None


def test_so_many_passes_and_samples_are_looked_at() -> None:
    run = Run()
    for _ in range(EVALUATED):
        run.train()
        run.ask(run.held_out)
    run.train()
    assert run.ask(run.held_out) is None
    large = Run()
    large.data = torch.arange(2.0 * SAMPLES).view(-1, 1)
    for _ in range(2):
        for batch in large.data.split(SAMPLES // 2):
            large.reads(large.model, [batch])
        assert large.ask(large.held_out[:, :1]) is None


def test_random_numbers_of_the_script_stay() -> None:
    run = Run()
    torch.manual_seed(1)
    run.reads(run.model, [run.data])
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(1))
