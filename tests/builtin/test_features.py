"""One row for each feature: traces, jobs and the page have each."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest
import torch

from tspec.builtin.features import FEATURES, OF_ELEMENTS
from tspec.builtin.folds import FOLDS
from tspec.check.interpret import folds as interpret
from tspec.runtime import features as hooks
from tspec.runtime.edges import Missing
from tspec.runtime.live.features import features
from tspec.runtime.tensors import TensorSample
from tspec.trace.model import Tensor

PAGE = Path(__file__).resolve().parents[2] / "docs/design/semantics.md"


def test_a_trace_holds_every_feature() -> None:
    known = [field.name for field in dataclasses.fields(Tensor)]
    assert known == [*FEATURES, "object"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.complex64])
def test_a_job_reads_every_feature_of_elements(dtype: torch.dtype) -> None:
    rows = features([torch.ones(3, dtype=dtype), torch.ones(0, dtype=dtype)], OF_ELEMENTS)
    types = {"int": int, "float": float, "bool": bool}
    for row in rows:
        wrong = [n for n in OF_ELEMENTS if type(row[n]) is not types[FEATURES[n].kind]]
        assert wrong == [] and Missing.NOT_RECORDED not in row.values()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_absmax_and_nans_are_read(dtype: torch.dtype) -> None:
    values = [[1.0, -3.0, 2.0], [math.nan, 1.0, math.nan], [-math.inf, math.nan], [-0.0], []]
    found = features([torch.tensor(each, dtype=dtype) for each in values], ("absmax", "nans"))
    assert [row["nans"] for row in found] == [0, 2, 1, 0, 0]
    assert [str(row["absmax"]) for row in found] == ["3.0", "nan", "nan", "0.0", "nan"]


def test_absmax_and_nans_of_ints() -> None:
    [row] = features([torch.tensor([-(2**40), 3])], ("absmax", "nans"))
    assert row == {"absmax": 2.0**40, "nans": 0}


def test_absmax_and_nans_of_several_tensors_as_one() -> None:
    tensors = (Tensor(absmax=2.0, nans=1), Tensor(absmax=5.0, nans=2))
    live = tuple(TensorSample({"absmax": each.absmax, "nans": each.nans}) for each in tensors)
    for feature in (interpret.feature, lambda name, of: hooks.feature(of, name)):
        of = tensors if feature is interpret.feature else live
        assert (feature("absmax", of), feature("nans", of)) == (5.0, 3)
        assert feature("nans", ()) == 0


def test_the_page_lists_the_features() -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition("\n## Features\n")
    rows = re.findall(r"^\| (`.*?) \|", section.partition("\n## ")[0], re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(FEATURES)


@pytest.mark.parametrize("name", FEATURES)
def test_a_row_is_whole(name: str) -> None:
    row = FEATURES[name]
    assert row.many in (None, "list", *FOLDS)
    assert {*row.inputs, *row.inputs_of_many} <= {*FEATURES}
