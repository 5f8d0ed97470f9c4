"""Names of models that torch has changed."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule

from tspec.runtime.live import LiveJob, WatchSpec
from tspec.runtime.live.mechanisms.forward import ModuleCallListener
from tspec.runtime.live.models import ModelRegistry


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)


def test_fully_shard_leaves_no_trace_in_a_models_name() -> None:
    net = Net()
    # As `fully_shard` does.
    net.__class__ = type("FSDPNet", (FSDPModule, Net), {})
    models = ModelRegistry()
    models.add_root(net)
    assert [root.title for root in models.roots] == ["Net"]


def test_inner_calls_of_modules_that_were_called_before_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    before = ModuleCallListener.before

    def noted(self: ModuleCallListener, args: tuple[nn.Module, ...], kwargs: object) -> bool:
        seen.append(type(args[0]).__name__)
        return before(self, args, kwargs)

    monkeypatch.setattr(ModuleCallListener, "before", noted)
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with LiveJob(WatchSpec(()), ()) as job:
        net(torch.ones(1, 2))
        net(torch.ones(1, 2))
        assert all(module in job.state.models.called for module in net.modules())
    assert seen == ["Sequential", "Linear", "ReLU", "Sequential"]


def test_a_model_of_which_a_loop_calls_the_parts_counts_as_called() -> None:
    """As in Lightning, where `training_step` is no forward pass."""
    model = nn.ModuleDict({"encoder": nn.Linear(2, 2), "decoder": nn.Linear(2, 2)})
    copy = nn.ModuleDict({"encoder": nn.Linear(2, 2)})
    models = ModelRegistry()
    models.add_root(model)
    models.add_root(copy)
    models.called_from_outside(model["decoder"])
    assert model in models.called
    assert copy not in models.called
