"""Which ranks hold a copy of a parameter, where the job has no groups any more."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from tspec.targets.megatron.pieces import STATE, ShardedFields


def test_megatron_keeps_groups_whose_process_group_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A job may end with `destroy_process_group` alone; fields are read once more after that."""
    state = SimpleNamespace(model_parallel_is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, STATE, state)
    assert not dist.is_initialized()
    weight = SimpleNamespace(module=object(), tensor=torch.nn.Parameter(torch.ones(2)))
    copy = SimpleNamespace(module=None, tensor=torch.ones(2))
    for field in ("replicas", "counted", "main_grad"):
        found = ShardedFields().column("parameter", field, {"weight": weight, "copy": copy})
        assert found == {}
