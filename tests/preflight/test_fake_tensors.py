"""Models are converted among tensors without elements as real ones are."""

from __future__ import annotations

import torch
from torch import nn

from tspec.preflight.fake_tensors import fake_tensors


def test_parameters_stay_the_same_in_another_dtype() -> None:
    with fake_tensors():
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        model[0].bias = None
        before = list(model.parameters())
        model.to(torch.bfloat16)
        made = model(torch.randn(2, 3, dtype=torch.bfloat16))
        made.sum().backward()
        assert [each.dtype for each in (made, model[1].running_mean)] == [torch.bfloat16] * 2
        model.double()
        model.to("cpu")
        gradients = [each.grad for each in before]
    assert all(one is other for one, other in zip(model.parameters(), before, strict=True))
    assert {each.dtype for each in (*before, *gradients) if each is not None} == {torch.float64}
    assert before[0].untyped_storage().nbytes() == 8 * 12


def test_parameters_of_another_device_are_others() -> None:
    with fake_tensors():
        with torch.device("meta"):
            model = nn.Linear(3, 4)
        weight = model.weight
        model.to_empty(device="cpu")
        made = model(torch.randn(2, 3))
    assert model.weight is not weight
    assert (made.device.type, model.weight.requires_grad) == ("cpu", True)


def test_the_method_is_torchs_again_afterwards() -> None:
    before = nn.Module._apply
    with fake_tensors():
        assert nn.Module._apply is not before
    assert nn.Module._apply is before
