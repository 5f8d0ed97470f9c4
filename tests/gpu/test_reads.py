"""Features that are read on a GPU are those that are read on the CPU."""

import math

import pytest
import torch

from tspec.builtin.features import OF_ELEMENTS
from tspec.runtime.live.cuda import reads
from tspec.runtime.live.digest import digests
from tspec.runtime.live.features import features
from tspec.runtime.transfers import RowInTransfer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

SHAPES = [(3,), (17, 5), (1000,), (4096,), (8193,), (300, 700), (1025, 1031), (0,), (1,)]
OTHERS = [torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2]
"""Dtypes that are read by torch's own functions."""


def tensors(dtype: torch.dtype) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    found = [(torch.randn(shape, generator=draw) * 3).to(dtype) for shape in SHAPES]
    return [*found, found[5].t(), found[1][1:], found[2][::3]]


def close(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-9)
    return one == other


@pytest.mark.parametrize("dtype", [*reads.KINDS, *OTHERS], ids=str)
def test_features_are_those_of_the_cpu(dtype: torch.dtype) -> None:
    held = tensors(dtype)
    here = features(held, OF_ELEMENTS)
    there = features([each.cuda() for each in held], OF_ELEMENTS)
    for tensor, one, other in zip(held, here, there, strict=True):
        for name in OF_ELEMENTS:
            assert close(one[name], other[name]), (tuple(tensor.shape), name, one, other)
    assert reads.reads(torch.device("cuda", 0), dtype) == (dtype not in OTHERS)


def test_tensors_of_several_dtypes_are_read_together() -> None:
    held = [each.cuda() for dtype in reads.KINDS for each in tensors(dtype)]
    together = features(held, ("digest", "norm", "zeros"))
    assert together == [features([each], ("digest", "norm", "zeros"))[0] for each in held]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=str)
def test_values_that_are_not_finite(value: float) -> None:
    held = torch.arange(100_000.0, device="cuda")
    held[77_777] = value
    [row] = features([held], ("norm", "finite", "min", "max", "nans", "absmax"))
    [same] = features([held.cpu()], ("norm", "finite", "min", "max", "nans", "absmax"))
    assert row["finite"] is False
    assert all(close(row[name], same[name]) for name in row), (row, same)


def test_norms_of_large_and_small_elements_neither_overflow_nor_vanish() -> None:
    large, small = torch.full((9000,), 1e30), torch.full((9000,), 1e-30)
    rows = features([large.cuda(), small.cuda()], ("norm", "finite"))
    assert rows[0]["norm"] == pytest.approx(1e30 * math.sqrt(9000), rel=1e-6)
    assert rows[1]["norm"] == pytest.approx(1e-30 * math.sqrt(9000), rel=1e-6)
    assert rows[0]["finite"] is True


def test_digests_do_not_change_from_run_to_run() -> None:
    held = [torch.randn(1000, 999, device="cuda"), torch.randn(70, device="cuda")]
    first = reads.digests(held).tolist()
    assert all(reads.digests(held).tolist() == first for _ in range(20))
    assert digests([each.cpu() for each in held]).tolist() == first


def test_one_transfer_reads_all_tensors() -> None:
    held = [torch.randn(1000, device="cuda") for _ in range(50)]
    held += [each.bfloat16() for each in held]
    names = ("digest", "norm", "finite", "zeros", "std")
    first = [dict(row) for row in features(held, names)]
    torch.cuda.set_sync_debug_mode("error")
    try:
        rows = features(held, names)  # nothing is waited for here
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len({id(row.transfer) for row in rows if isinstance(row, RowInTransfer)}) == 1
    assert rows == first
