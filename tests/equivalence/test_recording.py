"""What a rank recorded is read as it was written, bit by bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tspec.equivalence.recording import (
    Recording,
    SkippedUpdate,
    TensorName,
    is_recorded,
    read,
    write,
)

TENSORS = (
    torch.tensor(1.5),
    torch.zeros(0, 3),
    torch.randn(3, 4).t(),
    torch.tensor([float("nan"), -0.0, float("inf")]),
    torch.randn(5).bfloat16(),
    torch.randn(5).to(torch.float8_e4m3fn),
    torch.tensor([[True, False, True]]),
    torch.arange(-3, 3),
    torch.randn(2, dtype=torch.complex64),
)


@pytest.mark.parametrize("tensor", TENSORS, ids=lambda each: f"{each.dtype}{list(each.shape)}")
def test_a_tensor_comes_back(tensor: torch.Tensor, tmp_path: Path) -> None:
    name = TensorName("outputs", "層.0", 2, 1, 3)
    skipped = frozenset({SkippedUpdate(2, 1), SkippedUpdate(3)})
    said = Recording(
        *({name: tensor}, {"層.0.weight": 0.1}), skipped=skipped, ungathered=frozenset({name})
    )
    write(tmp_path, 1, said)
    found = read(tmp_path, 1)
    again = found.tensors[name]
    assert (found.filled, found.skipped) == ({"層.0.weight": 0.1}, skipped)
    assert found.ungathered == {name}
    assert (again.dtype, again.shape) == (tensor.dtype, tensor.shape)
    bits = [each.contiguous().reshape(-1).view(torch.uint8) for each in (tensor, again)]
    assert torch.equal(*bits)


def test_nothing_recorded_is_a_recording(tmp_path: Path) -> None:
    assert not is_recorded(tmp_path, 0)
    write(tmp_path, 0, Recording({}, {}))
    assert is_recorded(tmp_path, 0)
    assert read(tmp_path, 0) == Recording({}, {})


def test_a_rank_that_recorded_nothing_has_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path, 0)
