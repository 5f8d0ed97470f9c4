"""A loop of its own around megatron-core's model and optimizer, without its schedules, that calls generated hooks.

python tests/megatron/own_loop.py hooks.py LAYOUT

With `none` in place of the hooks it calls none, as a script that is not edited.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.megatron.cpu import run_on_cpu
from tests.megatron.layouts import Layout

run_on_cpu()


def loaded(path: str) -> Any:
    """The generated module, or what does nothing in its place."""
    if path == "none":
        return MagicMock()
    spec = importlib.util.spec_from_file_location("hooks", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def train(hooks: Any, layout: Layout) -> None:
    """Steps that are numbered from 11, as of a job that goes on."""
    from tests.megatron.job import batches, chunks_of, config_of, forward_step, optimizer_of, set_up

    set_up(layout)
    config = config_of(layout)
    [model] = chunks_of(config, layout)
    optimizer, _ = optimizer_of(config, [model], layout)
    iterator = batches(layout)
    hooks.attach([model], config, optimizer)
    try:
        for i in range(11, 11 + layout.steps):
            hooks.step_begin(i)
            model.zero_grad_buffer()
            optimizer.zero_grad()
            for _ in range(layout.microbatches):
                output, loss_of = forward_step(layout, iterator, model)
                loss = loss_of(output)[0] / layout.microbatches
                loss.backward()
            model.finish_grad_sync()
            hooks.gradients_ready(i)
            optimizer.step()
            hooks.stepped(i)
    finally:
        hooks.close()
    print(f"loss {loss.item() * layout.microbatches:.5f}")


def main() -> None:
    import torch.distributed as dist

    layout = Layout.parse(sys.argv[2])
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    train(loaded(sys.argv[1]), layout)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
