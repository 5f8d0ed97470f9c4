"""Places of a generator in its stream."""

from __future__ import annotations

import pytest
import torch

from tspec.runtime.live.checkpoints import streams
from tspec.runtime.live.checkpoints.streams import began_anew, is_state


def states(seed: int, *draws: int) -> list[torch.Tensor]:
    """The states of a generator: seeded, and after each of the draws."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    found = [generator.get_state()]
    for draw in draws:
        torch.rand(draw, generator=generator)
        torch.randn(20, generator=generator)
        found.append(generator.get_state())
    return found


@pytest.mark.parametrize("seed", [0, 7, 2**63 + 11, -5])
def test_an_earlier_place_is_told_from_a_later_one(seed: int) -> None:
    along = states(seed, 1, 3, 700, 10, 5000, 1, 100_000)
    for place, now in enumerate(along):
        for other, before in enumerate(along):
            assert began_anew(now, before) == (place < other)


def test_another_seed_is_another_stream() -> None:
    assert began_anew(states(1, 5000)[-1], states(2, 10)[-1])


def test_a_place_that_is_too_far_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = states(3, 50_000, 50_000)[1:]
    assert began_anew(near, far)
    monkeypatch.setattr(streams, "BLOCKS", 10)
    assert not began_anew(near, far)


def test_what_is_a_state() -> None:
    state = torch.get_rng_state()
    assert is_state(state)
    assert not is_state(state[:-1]) and not is_state(state.to(torch.int16)) and not is_state([1])
