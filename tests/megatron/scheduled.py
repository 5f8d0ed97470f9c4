"""A script around megatron-core's schedules that checks itself with generated hooks.

    torchrun tests/megatron/scheduled.py hooks.py LAYOUT install|attach

With `install` a `with` block is around all of it; with `attach` the script says where its steps are.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.megatron.cpu import run_on_cpu
from tests.megatron.layouts import Layout

run_on_cpu()


def installed(hooks: Any, layout: Layout) -> None:
    """Steps are found at the schedules."""
    from tests.megatron.job import job_of

    with hooks.install():
        job = job_of(layout)
        for _ in range(layout.steps):
            job.step()


def attached(hooks: Any, layout: Layout) -> None:
    """Steps are those that the script numbers."""
    from tests.megatron.job import job_of

    job = job_of(layout)
    hooks.attach(job.chunks, job.chunks[0].config, job.optimizer)
    try:
        for i in range(1, layout.steps + 1):
            hooks.step_begin(i)
            job.step()
            hooks.stepped(i)
    finally:
        hooks.close()


def main() -> None:
    import torch.distributed as dist

    from tests.megatron.own_loop import loaded

    dist.init_process_group("gloo")
    way = {"install": installed, "attach": attached}[sys.argv[3]]
    way(loaded(sys.argv[1]), Layout.parse(sys.argv[2]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
