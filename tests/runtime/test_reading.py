"""Features that only a running job can give: per row, cast to another dtype, of a change."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.runtime.training import module, train
from tspec.runtime.live.source import LiveSource
from tspec.runtime.reading import cut_feature, of_difference, read_features
from tspec.values import Missing


def test_rows_columns_and_dimensions() -> None:
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert cut_feature(x, "norm", "row") == (5.0, 0.0)
    assert cut_feature(x, "norm", "column") == (3.0, 4.0)
    assert cut_feature(x, "std", "0") == (1.5, 2.0)
    assert cut_feature(x, "max", "-1") == (4.0, 0.0)
    deep = torch.ones(2, 3, 2)
    assert cut_feature(deep, "norm", "row") == (6**0.5, 6**0.5)
    assert cut_feature(deep, "norm", "column") == (2.0, 2.0, 2.0)


def test_nothing_is_read_of_memory_that_was_given_back() -> None:
    source: Any = None
    given, whole = torch.ones(2, 3), torch.ones(2, 3)
    given.untyped_storage().resize_(0)
    wanted = ("norm/row", "norm@cast", "@copy", "@itself")
    assert read_features(source, [given], wanted) == [dict.fromkeys(wanted, Missing.NOT_RECORDED)]
    assert of_difference(source, whole, given, "norm") is Missing.NOT_RECORDED


def test_norms_of_rows_are_read_in_a_job() -> None:
    rule = 'for p in parameters(name: "weight")\nbefore optimizer.step\nexpect min(norm(p.data, per: row)) > 0'
    done = train(module(rule), steps=2)
    assert done.checker is not None
    assert done.checker.rules[0].counts["holds"] == 2


def test_what_a_step_changed_is_read_in_a_job() -> None:
    rule = (
        "for p in parameters\nduring optimizer.step\nexpect zeros(change(p.data)) < 50%\nelse warn"
    )

    def freeze(step: int, model: nn.Module) -> None:
        if step == 2:
            model.get_parameter("bias").grad = None

    done = train(module(rule), steps=2, disturb=freeze)
    assert [(one["step"], one["subject"]) for one in done.found] == [(2, "bias")]


def test_the_difference_of_two_tensors_is_read_in_a_job() -> None:
    rule = (
        "for p in parameters\nfor q in parameters\neach step\nwhen p.data.shape == q.data.shape\n"
        "expect norm(difference(p.data, q.data)) == 0\n"
        "  and norm(difference(p.data, old(q.data))) == norm(change(p.data))\n"
        "  and (step > 1 or norm(difference(p.data, first(q.data))) == norm(change(p.data)))"
    )
    done = train(module(rule), steps=3)
    assert done.checker is not None
    counts = done.checker.rules[0].counts
    assert (counts["violated"], counts["unknown"]) == (0, 0)
    assert counts["holds"] == 6


def test_a_cast_is_that_of_the_other_dtype() -> None:
    rule = (
        "for p in parameters\nafter optimizer.step\n"
        "expect digest(cast(p.data, float32)) == digest(p.data)\n"
        "  and digest(cast(p.data, bfloat16)) != digest(p.data)"
    )
    done = train(module(rule), steps=1)
    assert done.checker is not None
    assert done.checker.rules[0].counts["unknown"] == 0
    assert done.checker.rules[0].counts["holds"] >= 1


def test_inside_of_a_transform_nothing_is_cut() -> None:
    rule = "for c in calls(forward)\nexpect max(std(c.output, dim: 0)) >= 0"

    def transform(step: int, model: nn.Module) -> None:
        torch.vmap(model)(torch.ones(5, 4, 3))

    done = train(module(rule), steps=2, disturb=transform)
    assert done.checker is not None
    assert done.checker.faults == []
    counts = done.checker.rules[0].counts
    assert (counts["holds"], counts["unknown"]) == (2, 2)


def test_sparse_tensors_are_cut() -> None:
    sparse = torch.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 5.0]], (4, 2))
    for feature, cut in (("std", "1"), ("norm", "row"), ("max", "column"), ("mean", "0")):
        assert cut_feature(sparse, feature, cut) == cut_feature(sparse.to_dense(), feature, cut)


def test_nested_tensors_are_not_cut() -> None:
    """As layers of a transformer get them in evaluation, where padding is masked."""
    rule = "for c in calls(forward)\nexpect max(std(c.inputs[0], dim: 0)) >= 0"

    def evaluate(step: int, model: nn.Module) -> None:
        with torch.no_grad():
            model(torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]))

    done = train(module(rule), steps=2, disturb=evaluate)
    assert done.checker is not None
    assert done.checker.faults == []
    counts = done.checker.rules[0].counts
    assert (counts["holds"], counts["unknown"]) == (2, 2)


@pytest.mark.parametrize(
    ("when", "verdicts", "reads"), [("step <= 2", (2, 3), 4), ("step > 2", (3, 2), 8)]
)
def test_first_is_read_at_the_first_window_and_idle_ones_read_nothing(
    monkeypatch: pytest.MonkeyPatch, when: str, verdicts: tuple[int, int], reads: int
) -> None:
    seen: list[tuple[str, ...]] = []
    features = LiveSource.features

    def noted(self: LiveSource, tensors: list[torch.Tensor], names: tuple[str, ...]) -> object:
        seen.append(names)
        return features(self, tensors, names)

    monkeypatch.setattr(LiveSource, "features", noted)
    norm = "norm(parameters.data)"
    rule = f"during optimizer.step\nwhen {when}\nexpect {norm} <= 10 * first(old({norm}))"
    done = train(module(rule), steps=5)
    assert done.checker is not None
    counts = done.checker.rules[0].counts
    assert (counts["holds"], counts["idle"]) == verdicts
    assert sum("norm" in names for names in seen) == reads
