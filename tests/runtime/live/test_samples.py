"""Whether layers are given data that differ from sample to sample."""

import pytest
import torch
from torch import nn

from tspec.runtime.live.samples.given import CALLS, FULL_BATCHES, DataOfLayers, KnownSamples
from tspec.runtime.live.samples.rows import SAMPLES, RowStore, row_numbers

SAME = torch.tensor([1.0, 2.0]).expand(4, 2)


@pytest.mark.parametrize(
    ("given", "differs"),
    [
        (SAME, False),
        (SAME + torch.arange(4)[:, None], True),
        (torch.tensor([3, 3, 3]), False),
        (torch.tensor([3, 1, 3]), True),
        (torch.zeros(4, 2), None),
        (SAME[:1], None),
        (torch.tensor(1.0), None),
        (torch.ones(4, 2, requires_grad=True), None),
        (torch.ones(4, 2, device="meta"), None),
        (torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,)), True),
        (None, None),
    ],
)
def test_data_differ_between_rows_and_not_within_them(given, differs: bool | None) -> None:
    assert DataOfLayers().data_differ(given) is differs


def test_memory_that_was_given_back_and_wrapped_tensors_are_not_read() -> None:
    given = torch.ones(4, 2)
    given.untyped_storage().resize_(0)
    assert DataOfLayers().data_differ(given) is None
    seen = []
    torch.vmap(lambda row: (seen.append(DataOfLayers().data_differ(row)), row)[1])(SAME)
    assert seen == [None]


def test_an_evaluation_and_later_inputs_are_not_looked_at() -> None:
    layers = DataOfLayers()
    with torch.no_grad():
        assert layers.data_differ(SAME) is None
    assert [layers.data_differ(SAME) for _ in range(CALLS + 1)] == [False] * CALLS + [None]


def test_samples_of_an_evaluation_that_the_model_was_trained_on() -> None:
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    known = KnownSamples(lambda module: module in (model, other)).known_samples
    data = torch.randn(16, 3)
    half = torch.cat([data[:8], torch.randn(8, 3)])

    def evaluated(module: nn.Module, *inputs: object) -> float | None:
        module.eval()
        with torch.no_grad():
            found = known(module, inputs)
        module.train()
        return found

    assert evaluated(model, data) is None
    assert known(model, [data[8:]]) is None
    assert evaluated(model, data) is None
    assert known(model, [data[:8]]) is None
    assert evaluated(model, data) == 1.0
    assert evaluated(model, torch.arange(3), half) == 0.5
    assert evaluated(model, torch.randn(16, 3)) == 0.0
    assert evaluated(model, data[:4]) is None
    assert evaluated(model, half.clone().requires_grad_()) is None
    assert evaluated(other, data) is None
    assert evaluated(nn.ReLU(), data) is None
    with torch.no_grad():
        assert known(model, [half]) is None
    assert evaluated(model, half) == 0.5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_samples_of_any_type_are_compared(dtype: torch.dtype) -> None:
    model = nn.Linear(3, 2)
    known = KnownSamples(lambda module: True).known_samples
    data = torch.arange(32 * 20).view(32, 20).to(dtype)
    assert known(model, [data[:16]]) is None
    assert known(model, [data[16:]]) is None
    model.eval()
    with torch.no_grad():
        assert known(model, [data]) == 1.0


def test_a_model_that_gets_all_data_in_each_pass_is_left_out() -> None:
    model = nn.Linear(3, 2)
    known = KnownSamples(lambda module: True).known_samples
    data = torch.randn(16, 3)
    for _ in range(FULL_BATCHES):
        assert known(model, [data]) is None
    assert known(model, [torch.randn(16, 3)]) is None
    model.eval()
    with torch.no_grad():
        assert known(model, [data]) is None


def test_no_more_samples_are_kept() -> None:
    model = nn.Linear(3, 2)
    known = KnownSamples(lambda module: True).known_samples
    data = torch.arange(2.0 * SAMPLES)[:, None]
    assert known(model, [data]) is None
    assert known(model, [data + 1e6]) is None
    model.eval()
    with torch.no_grad():
        assert known(model, [data]) == 0.5
        assert known(model, [data + 1e6]) == 0.0


def test_a_store_of_rows_that_come_again_does_not_grow() -> None:
    rows, other = torch.arange(1000), torch.arange(2000, 2010)
    store = RowStore()
    for _ in range(200):
        store.add(rows)
    assert not store.is_full
    assert len(store) <= SAMPLES
    assert store.known(rows).all()
    assert not store.known(other).any()
    store.add(other)
    assert store.known(other).all()
    assert not RowStore().known(rows).any()


def test_rows_are_told_apart_by_every_element_of_short_ones() -> None:
    same = torch.zeros(16, 4)
    for place in range(4):
        given = same.clone()
        given[3, place] = 2.0**-20
        numbers = row_numbers([given])
        assert numbers is not None
        assert (numbers == numbers[0]).sum() == 15
