"""Whether layers are given data that differ from sample to sample."""

import pytest
import torch

from tspec.runtime.live.samples import CALLS, DataOfLayers

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
