"""Steps and micro-batches of real Megatron jobs are those of its schedules and optimizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.families import EXHAUSTIVE
from tests.megatron.jobs import recorded
from tspec.trace.model import Begin
from tspec.trace.read import read_trace

EVENTS = Path(__file__).parent / "events.tspec"
NAMES = {
    "schedule": "S",
    "forward_step": "F",
    "backward_step": "B",
    "finalize": "R",
    "update": "U",
}
"""Events of each step, as letters; passes have the number of their micro-batch."""
ALONE = "SF1B1F2B2F3B3F4B4RU"
FIRST_STAGE = "SF1F2B1F3B2F4B3B4RU"
CHUNKS_OF_FIRST_STAGE = "SF1F2F1F2F3B1F4B2F3B1F4B2B3B4B3B4RU"
CHUNKS_OF_LAST_STAGE = "SF1F2F1B1F2B2F3B1F4B2F3B3F4B4B3B4RU"


def seen(folder: Path) -> list[dict[int, str]]:
    """Of each rank, what lies in each step."""
    found: list[dict[int, str]] = []
    for stream in read_trace(folder).streams:
        steps: dict[int, str] = {}
        for record in stream.records:
            if isinstance(record, Begin) and record.event in NAMES:
                place = record.context
                number = str(place.microbatch) if record.event.endswith("_step") else ""
                steps[place.step] = steps.get(place.step, "") + NAMES[record.event] + number
        found.append(steps)
    return found


@pytest.mark.gloo
@pytest.mark.parametrize(
    ("layout", "ranks"),
    [
        ("bf16,steps=2", [ALONE]),
        pytest.param(
            *("pp=2,virtual=2,steps=2", [CHUNKS_OF_FIRST_STAGE, CHUNKS_OF_LAST_STAGE]),
            marks=EXHAUSTIVE,
        ),
        *(
            pytest.param(layout, ranks, marks=EXHAUSTIVE)
            for layout, ranks in (
                ("steps=2,recompute", [ALONE]),
                ("pp=2,steps=2", [FIRST_STAGE, ALONE]),
                ("dp=2,zero,bf16,steps=2", ["SF1B1F2B2RU"] * 2),
            )
        ),
    ],
)
def test_each_iteration_is_a_step(layout: str, ranks: list[str], tmp_path: Path) -> None:
    recorded(tmp_path / "run", layout, EVENTS)
    assert seen(tmp_path / "run") == [{1: rank, 2: rank} for rank in ranks]
