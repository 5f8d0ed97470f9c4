"""Larger inputs and labels that no step had before are signs of a new task."""

import pytest
import torch
from torch import nn

from tspec.runtime.live.samples.tasks import CLASSES, STEADY, EnlargedInputs, NewLabels

torch.manual_seed(0)


def enlargements(*sizes: tuple[int, ...]) -> int:
    """How often inputs of these sizes, one after the other, become larger."""
    model, enlarged = nn.Linear(1, 1), EnlargedInputs()
    given = [("text", torch.empty(size), torch.empty(99, 99)) for size in sizes]
    return sum(enlarged.enlarges_inputs(model, inputs) for inputs in given)


def test_a_longer_sequence_after_many_of_one_length_is_counted() -> None:
    short, long = (8, 4, 1), (8, 16, 1)
    assert enlargements(*[short] * STEADY, long) == 1
    assert enlargements(*[short] * (STEADY - 1), long) == 0
    assert enlargements(*[short] * STEADY, *[long] * STEADY, (8, 17, 1)) == 2


def test_smaller_last_batches_and_known_lengths_are_not_counted() -> None:
    whole, last = (8, 4, 1), (3, 4, 1)
    assert enlargements(*[whole] * STEADY, last, *[whole] * STEADY, last, whole) == 0
    assert enlargements(*[whole] * STEADY, (8, 2, 1), whole) == 0
    assert enlargements(*[whole] * (STEADY - 1), last, (8, 16, 1)) == 1


def test_lengths_that_differ_from_batch_to_batch_are_not_counted() -> None:
    ragged = [(8, 4 + 2 * (i % 3), 1) for i in range(3 * STEADY)]
    assert enlargements(*ragged, (8, 99, 1)) == 0


def test_inputs_of_other_dimensions_begin_anew() -> None:
    assert enlargements(*[(8, 4)] * STEADY, (8, 4, 2)) == 0


def test_evaluations_enlarge_nothing() -> None:
    model, enlarged = nn.Linear(1, 1), EnlargedInputs()
    for _ in range(STEADY):
        enlarged.enlarges_inputs(model, [torch.empty(8, 4)])
    with torch.no_grad():
        assert not enlarged.enlarges_inputs(model, [torch.empty(8, 16)])
    assert enlarged.enlarges_inputs(model, [torch.empty(8, 16)])


class _Losses:
    """Cross entropies of one job."""

    def __init__(self, classes: int = 10) -> None:
        self.classes = classes
        self._labels = NewLabels()

    def of(self, *labels: int, grad: bool = True) -> float:
        target = torch.tensor(labels)
        logits = torch.zeros(len(labels), self.classes, requires_grad=grad)
        found = self._labels.new_labels(logits, target)
        return 0.0 if found is None else float(found)

    def many(self, *labels: int) -> set[float]:
        return {self.of(*labels) for _ in range(15)}


def test_the_labels_of_a_new_task_are_new_once() -> None:
    losses = _Losses()
    assert losses.many(0, 1, 1) == {0.0}
    assert losses.of(2, 3, 0, 1) == 1.0
    assert losses.many(2, 3, 0, 1) == {0.0}


def test_a_few_new_labels_are_usual() -> None:
    losses = _Losses()
    losses.many(0, 1, 1)
    assert losses.of(0, 1, 0, 1, 2) == 0.0


def test_labels_that_are_new_in_each_loss_are_usual() -> None:
    losses = _Losses(classes=100)
    assert {losses.of(5 * i, 5 * i + 1, 5 * i + 2) for i in range(20)} == {0.0}


def test_known_labels_in_another_order_are_not_new() -> None:
    losses = _Losses()
    losses.many(*range(10))
    assert losses.of(*((i + 1) % 10 for i in range(10))) == 0.0


def test_ignored_labels_and_evaluations_do_not_count() -> None:
    losses = _Losses()
    losses.many(0, 1, -100)
    assert losses.of(0, 1, -100, -100, -100) == 0.0
    assert losses.of(2, 3, grad=False) == 0.0
    assert losses.of(2, 3) == 1.0


@pytest.mark.parametrize(
    ("logits", "target"),
    [
        (torch.zeros(4, CLASSES + 1, requires_grad=True), torch.zeros(4, dtype=torch.int64)),
        (torch.zeros(4, 3, requires_grad=True), torch.zeros(4, 3)),
        (torch.zeros(3, requires_grad=True), torch.tensor(1)),
        (None, None),
    ],
)
def test_other_losses_have_no_new_labels(logits: object, target: object) -> None:
    assert NewLabels().new_labels(logits, target) is None


def test_labels_of_places_are_read() -> None:
    labels = NewLabels()
    logits = torch.zeros(2, 10, 3, requires_grad=True)
    for _ in range(15):
        labels.new_labels(logits, torch.zeros(2, 3, dtype=torch.int64))
    found = labels.new_labels(logits, torch.full((2, 3), 7))
    assert found is not None
    assert float(found) == 1.0


def test_labels_are_not_read_once_all_classes_had_a_loss() -> None:
    labels = NewLabels()
    logits, target = torch.zeros(10, 10, requires_grad=True), torch.arange(10)
    given = [labels.new_labels(logits, target) for _ in range(4)]
    assert given[0] is not None
    assert given[1:] == [None, None, None]
    of_nine = NewLabels()
    assert None not in [of_nine.new_labels(logits[:9], target[:9]) for _ in range(2)]
