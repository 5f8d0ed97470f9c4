"""A job of `train.py` whose losses are NaN from its third step on.

python tests/megatron/lost.py pp=2,steps=3
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.megatron import train
from tests.megatron.layouts import Layout

SOUND = 2
"""Steps with a finite loss."""


def main() -> None:
    train.prepare(None)
    import torch

    from tests.megatron import job

    made, passed = job.loss_of, 0

    def loss_of(layout: Layout, places: torch.Tensor, output: torch.Tensor) -> tuple[Any, ...]:
        nonlocal passed
        passed += 1
        spoilt = passed > SOUND * layout.microbatches
        return made(layout, places, output * torch.nan if spoilt else output)

    job.loss_of = loss_of
    train.main()


if __name__ == "__main__":
    main()
