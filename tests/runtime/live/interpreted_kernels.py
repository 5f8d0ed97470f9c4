"""The kernels that read tensors on a GPU agree with torch. `test_kernels` runs these tests under Triton's interpreter."""

import math

import pytest
import torch

from tspec.runtime.live import digest
from tspec.runtime.live.cuda import reads
from tspec.runtime.live.features import features

LONG = 2 * digest.SMALL + 2
"""Elements of float32 of which a digest takes column sums."""


def draw(dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = [(3,), (17, 5), (LONG,), (0,), (1,), (90, 110)]
    found = [(torch.randn(shape, generator=generator) * 3).to(dtype) for shape in shapes]
    return [*found, found[5].t(), found[1][1:], torch.full((50,), 3).to(dtype)]


@pytest.mark.parametrize("dtype", reads.KINDS, ids=str)
def test_features_are_those_of_torch(dtype: torch.dtype) -> None:
    tensors = draw(dtype)
    names = tuple(sorted(reads.READ))
    columns = reads.read(tensors, names).read()
    for place, row in enumerate(features(tensors, names)):
        for name, value in row.items():
            found = columns[name][place]
            if isinstance(value, float):
                assert isinstance(found, float)
                close = math.isclose(value, found, rel_tol=1e-5, abs_tol=1e-9)
                assert close or (math.isnan(value) and math.isnan(found)), (place, name)
            else:
                assert found == value, (place, name)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=str)
def test_elements_that_are_not_finite(value: float) -> None:
    tensor = torch.arange(3000.0)
    tensor[2000] = value
    names = ("norm", "finite", "min", "max", "absmax", "nans", "zeros")
    columns = reads.read([tensor, torch.ones(3)], names).read()
    [row, _] = features([tensor, torch.ones(3)], names)
    assert [str(columns[name][0]) for name in names] == [str(row[name]) for name in names]
    assert columns["finite"] == [False, True]


def test_tensors_of_several_dtypes_are_read_together() -> None:
    tensors = [
        tensor for dtype in (torch.float32, torch.int64, torch.bfloat16) for tensor in draw(dtype)
    ]
    together = reads.read(tensors, ("digest", "zeros")).read()
    assert together["digest"] == digest.digests(tensors).tolist()
    assert together["zeros"] == [row["zeros"] for row in features(tensors, ("zeros",))]
