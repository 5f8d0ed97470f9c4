"""A frozen tensor that another file has is not missing in a file of adapters."""

import torch
from torch import nn

from tspec.runtime.live.checkpoints.saved import saved_models
from tspec.runtime.live.checkpoints.stored import StoredTensors


def tuned() -> nn.Sequential:
    """A frozen layer between two that are trained."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].requires_grad_(False)
    return model


def missing(stored: StoredTensors, model: nn.Module, *parts: str) -> list[str]:
    state = {name: value for name, value in model.state_dict().items() if name.startswith(parts)}
    return stored.missing_keys(saved_models(state, [model]))


def test_what_no_file_has_is_missing_each_time() -> None:
    stored, model = StoredTensors(), tuned()
    for _ in range(2):
        assert missing(stored, model, "0.", "2.") == ["1.bias", "1.weight"]


def test_what_was_saved_or_loaded_is_in_another_file() -> None:
    saved, loaded, model = StoredTensors(), StoredTensors(), tuned()
    assert missing(saved, model, "") == []
    loaded.loaded(model, model.state_dict())
    for stored in (saved, loaded):
        assert missing(stored, model, "0.", "2.") == []


def test_what_changed_since_or_is_trained_is_missing() -> None:
    stored, model = StoredTensors(), tuned()
    stored.loaded(model, model.state_dict())
    with torch.no_grad():
        model[1].bias.add_(1)
    assert missing(stored, model, "0.", "2.") == ["1.bias"]
    model.requires_grad_(True)
    assert missing(stored, model, "1.", "2.") == ["0.bias", "0.weight"]


def test_a_tied_tensor_that_is_missing_is_not_stored_under_its_other_name() -> None:
    stored, model = StoredTensors(), tuned()
    model.append(model[1])
    for _ in range(2):
        assert missing(stored, model, "0.", "2.") == ["1.bias", "1.weight"]
