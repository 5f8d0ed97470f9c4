"""Numbers of ranks and layers in words."""

from __future__ import annotations

import pytest

from tspec.layout.text import names_text, numbers_text, ranks_text


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([3], "3"),
        ([0, 1], "0, 1"),
        ([8, 0, 1, 2, 3], "0..3, 8"),
        ([0, 2, 3, 6], "0, 2, 3, 6"),
        (range(0, 12, 2), "0, 2, 4, 6, 8, 10"),
        (range(0, 14, 2), "0, 2, … 12"),
        ([*range(5, 70, 8), *range(85, 510, 8)], "5, 13, … 69, 85, 93, … 509"),
        ([0, *range(8, 12), *range(20, 160, 20)], "0, 8..11, 20, 40, … 140"),
    ],
)
def test_many_numbers_at_one_distance_are_shortened(numbers: list[int], said: str) -> None:
    assert numbers_text(numbers) == said


def test_ranks_and_layers_are_written_alike() -> None:
    assert ranks_text(range(0, 512, 8)) == "ranks 0, 8, … 504"
    assert names_text([f"layers.{at}.norm" for at in range(0, 16, 2)]) == "layers.{0, 2, … 14}.norm"
