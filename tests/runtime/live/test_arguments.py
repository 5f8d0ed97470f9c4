"""Arguments of builtins by name: they have no signature that Python could read."""

from typing import Any

import pytest
import torch

from tspec.runtime.live.arguments import CallSignature

X = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "name", "value"),
    [
        (torch.softmax, (X, 1), {}, "dim", 1),
        (torch.softmax, (X,), {"dim": -1}, "dim", -1),
        (torch.Tensor.softmax, (X, 0), {}, "dim", 0),
        (torch.Tensor.log_softmax, (X, 0), {}, "dim", 0),
        (torch.Tensor.clamp, (X, 0.5), {"max": 2}, "min", 0.5),
        (torch.Tensor.clamp, (X, 0.5), {"max": 2}, "max", 2),
        (torch.clamp, (X, 0.5), {}, "input", X),
    ],
)
def test_arguments_of_builtins(function, args, kwargs, name: str, value: object) -> None:
    assert CallSignature(function, False).get(name, args, kwargs) is value


@pytest.mark.parametrize(
    ("kwargs", "reduction"),
    [
        ({}, "mean"),
        ({"reduction": "none"}, "none"),
        ({"size_average": False}, "sum"),
        ({"size_average": True}, "mean"),
        ({"reduce": False}, "none"),
        ({"size_average": False, "reduction": "mean"}, "sum"),
    ],
)
def test_deprecated_arguments_say_how_a_loss_is_reduced(
    kwargs: dict[str, Any], reduction: str
) -> None:
    signature = CallSignature(torch.nn.functional.binary_cross_entropy, False)
    assert signature.get("reduction", (None, None), kwargs) == reduction
    assert CallSignature(torch.nn.functional.huber_loss, False).get("reduction", (), {}) == "mean"
