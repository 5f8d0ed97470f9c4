"""One rank of a job that a launcher starts, such as torchrun or a dry run: `rank.py tp=2,swiglu`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.megatron.cpu import run_on_cpu
from tests.megatron.layouts import Layout

if __name__ == "__main__":
    run_on_cpu()
    import torch.distributed as dist

    from tests.megatron.job import train

    dist.init_process_group("gloo")
    train(Layout.parse(sys.argv[1]))
