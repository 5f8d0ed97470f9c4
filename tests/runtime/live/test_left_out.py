"""Parameters whose moments are loaded, and whose values are not."""

from __future__ import annotations

import torch
from torch import nn

from tspec.runtime.live.checkpoints.left_out import LeftOutParameters


def trained() -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model and its optimizer after an update."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return model, optimizer


def load(known: LeftOutParameters, model: nn.Module, *begins: str) -> None:
    """Load the part of a state dict whose names begin so."""
    state = {name: each for name, each in trained()[0].state_dict().items() if name[0] in begins}
    known.loaded(model, model.load_state_dict(state, strict=False).missing_keys)


def test_moments_without_values() -> None:
    known, (model, optimizer) = LeftOutParameters(), trained()
    load(known, model, "0")
    assert known.values_left_out(optimizer) == ["1.bias", "1.weight"]


def test_a_part_that_is_trained_anew_has_no_moments() -> None:
    known, (model, _) = LeftOutParameters(), trained()
    load(known, model, "0")
    assert known.values_left_out(torch.optim.Adam(model.parameters())) == []


def test_values_that_are_loaded_in_two_parts() -> None:
    for parts in (("0", "1"), ("1", "0")):
        known, (model, optimizer) = LeftOutParameters(), trained()
        for part in parts:
            load(known, model, part)
        assert known.values_left_out(optimizer) == []


def test_values_that_the_script_sets_itself() -> None:
    known, (model, optimizer) = LeftOutParameters(), trained()
    load(known, model, "0")
    with torch.no_grad():
        for parameter in model[1].parameters():  # type: ignore[index]
            parameter.copy_(torch.ones_like(parameter))
    assert known.values_left_out(optimizer) == []
