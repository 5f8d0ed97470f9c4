"""Paths of callables: what is imported to find one, and what is waited for."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
import torch
from tspec.runtime.live.instrument.dotted import find

path = "torch._dynamo.eval_frame.OptimizedModule.__call__"
slow = "torch.distributed.pipelining.stage.PipelineStage.forward_one_chunk"
print(find(path), "torch._dynamo" in sys.modules, find("torch.nn.functional.linear").name)
print(find(slow), "torch.distributed.pipelining" in sys.modules)
saved = "torch.distributed.checkpoint.load"
print(find(saved), "torch.distributed.checkpoint" in sys.modules)
import torch._dynamo
import torch.distributed.checkpoint
import torch.distributed.pipelining
print(find(path).name, find(slow).name, find(saved).name)
"""


@pytest.mark.slow
def test_private_and_slow_modules_are_waited_for() -> None:
    """`torch._dynamo` takes seconds to import, which each job would pay."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.splitlines() == [
        "None False linear",
        "None False",
        "None False",
        "__call__ forward_one_chunk load",
    ]
