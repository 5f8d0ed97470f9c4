"""Names of models that torch has changed."""

from __future__ import annotations

from torch import nn
from torch.distributed.fsdp import FSDPModule

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
