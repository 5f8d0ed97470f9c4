"""The records of which the recordings in this folder were made: every kind of record and value."""

from __future__ import annotations

import math

from tspec.trace.model import (
    Begin,
    Boundary,
    Context,
    End,
    Finish,
    Missing,
    Record,
    Ref,
    Sample,
    Tensor,
)

_WEIGHT = Tensor(
    digest=-(2**63), norm=0.5, mean=-0.0, std=5e-324, min=-math.inf, max=1e308, sum=3.25,
    finite=False, zeros=0, numel=6, shape=(2, 3), dtype="bfloat16", device="cuda:0",
    memory_format="channels_last", requires_grad=True, name="größe.weight", object=7,
)  # fmt: skip


def batches(rank: int) -> list[list[Record]]:
    """What one rank recorded, by step."""
    found: list[list[Record]] = []
    for step in (1, 2, 3):
        now = Context(step, 1 + step // 3, step % 2, "train" if step < 3 else "eval")
        at = step * 100
        values = {
            "absent": Missing.ABSENT, "unrecorded": Missing.NOT_RECORDED, "flag": step == 2,
            "lr": 0.1 / step, "count": rank, "huge": 2**80, "text": f"层 {step}",
            "module": Ref("module", f"layers.{step}"), "list": (1, "a", 2.5),
            "set": frozenset({"a", "b"}), "map": {"x": (1, 2), "y": Ref("parameter", "w")},
        }  # fmt: skip
        found.append(
            [
                Boundary(at, now, "step", step),
                Begin(
                    at + 1, now, step * 2, None, "optimizer.step", "torch.optim.SGD.step", values
                ),
                Begin(at + 2, now, step * 2 + 1, step * 2, f"event{step}", "f", {}),
                End(at + 3, now, step * 2 + 1, {"output": (_WEIGHT, Tensor(), 3)}, "ValueError"),
                End(at + 4, now, step * 2, {}),
                Sample(at + 5, now, "parameter", f"w{step}", {"data": _WEIGHT, "grad": Tensor()}),
                Sample(at + 6, now, "group", "world", {"ranks": (0, 1)}),
                Sample(at + 7, now, "parameter", f"w{step}", {}, gone=True),
            ]
        )
    found.append([Finish(400, Context(3, 2, 1, "eval"))])
    return found
