"""What Megatron's attributes and groups say of a parameter: its copies, and the whole of which a rank holds a shard."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from tests.jobs import done
from tests.megatron.jobs import TRAIN, recorded
from tspec.targets.megatron.shards import STATE, ShardedFields

RULE = """edition 2026

module widths

use std.megatron

/// What is cut over tp is wide.
invariant pieces_are_wide {
  for p in parameters
  after optimizer.step once
  when p.tensor_model_parallel
  expect p.data.shape[0] > 1000 and p.whole_shape[0] > 1000
  else warn
}
"""


class Distributed:
    """A distributed optimizer, as far as `ShardedFields` reads it."""

    def __init__(self) -> None:
        self.model_param_gbuf_map: dict[Any, Any] = {}
        self.buffers: list[Any] = []
        self.model_chunks: list[Any] = []


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


@pytest.mark.parametrize(
    ("overlaps", "is_dispatched", "handle", "gathered"),
    [
        (False, False, None, True),
        (True, False, None, False),
        (True, True, object(), False),
        (True, True, None, True),
    ],
)
def test_a_parameter_is_gathered_once_the_forward_pass_has_waited_for_its_bucket(
    overlaps: bool, is_dispatched: bool, handle: object, gathered: bool
) -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    bucket = SimpleNamespace(
        ddp_config=SimpleNamespace(overlap_param_gather=overlaps),
        param_gather_dispatched=is_dispatched,
        param_gather_handle=handle,
    )
    optimizer = Distributed()
    optimizer.buffers = [SimpleNamespace(param_index_map={weight: 0})]
    optimizer.model_chunks = [SimpleNamespace(param_to_bucket_group={weight: bucket})]
    fields = ShardedFields()
    fields.learn(optimizer)
    assert fields.gathered(weight) is gathered
    assert fields.gathered(torch.nn.Parameter(torch.ones(2)))  # of no distributed optimizer


@pytest.mark.slow
@pytest.mark.gloo
def test_a_finding_says_of_which_tensor_a_rank_holds_a_piece(tmp_path: Path) -> None:
    spec, report = tmp_path / "widths.tspec", tmp_path / "report.json"
    spec.write_text(RULE)
    layout = "tp=2,sp,steps=2"
    done("-m", "tspec", "run", str(spec), "--report", str(report), "--", TRAIN, layout)
    [live] = json.loads(report.read_text())
    assert live["message"].endswith(
        "p.data.shape[0] = 32, p.whole_shape[0] = 64; embedding.word_embeddings.weight is a shard of [64, 32] (Shard(0) over tp)"
    )

    recorded(tmp_path / "run", layout, "std.megatron")
    done(
        "-m", "tspec", "check", str(spec), "--trace", str(tmp_path / "run"), "--report", str(report)
    )
    [offline] = json.loads(report.read_text())
    assert offline["message"] == live["message"]
    shown = done("-m", "tspec", "trace", "show", str(tmp_path / "run")).stdout
    assert "Shard(0) over tp 17 (embedding.word_embeddings.weight of [64, 32])" in shown
