"""Evaluations on held-out batches are counted for models that answer no training batch."""

from torch import nn

from tspec.runtime.live.samples.evaluations import HeldOutEvaluations


def _counted(*passes: tuple[nn.Module, int, bool, int]) -> HeldOutEvaluations:
    counted = HeldOutEvaluations()
    for each in passes:
        counted.answers(*each)
    return counted


def test_passes_without_an_update_in_between_are_one_evaluation() -> None:
    model = nn.Linear(2, 2)
    counted = _counted(
        (model, 1, True, 10), (model, 2, True, 10), (model, 3, True, 20), (model, 4, True, 20)
    )
    assert counted.held_out_evaluations(model) == 2
    assert counted.held_out_evaluations(nn.Linear(2, 2)) == 0


def test_a_model_that_answers_a_training_batch_is_not_counted() -> None:
    model = nn.Linear(2, 2)
    counted = _counted((model, 1, True, 10), (model, 2, False, 11), (model, 3, True, 12))
    assert counted.held_out_evaluations(model) == 0


def test_models_that_answer_one_batch_are_not_counted() -> None:
    model, copy, other = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
    counted = _counted((model, 1, True, 10), (copy, 1, True, 10), (other, 2, True, 10))
    assert [counted.held_out_evaluations(each) for each in (model, copy, other)] == [0, 0, 1]
