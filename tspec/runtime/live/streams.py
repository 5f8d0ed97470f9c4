"""Where a generator of random numbers is in its stream: whether it began anew, or goes on from a state that was kept.

The state of a CPU generator (`at::CPUGeneratorImpl`) holds its seed and a block of 624 numbers of the Mersenne twister, which are given out
one after the other. All blocks follow from the seed.
"""

from __future__ import annotations

import torch

SIZE = torch.Generator().get_state().numel()
"""The bytes of a generator's state."""
SEED, TAKEN, BLOCK = slice(0, 8), slice(16, 24), slice(24, 24 + 8 * 624)
"""Where a state has its seed, how many numbers of the block were given out, and the block."""
BLOCKS = 20_000
"""So many blocks of a stream are searched."""


def is_state(value: object) -> bool:
    """Whether it is the state of a CPU generator."""
    return (
        type(value) is torch.Tensor
        and value.dtype == torch.uint8
        and value.device.type == "cpu"
        and value.shape == (SIZE,)
    )


def began_anew(now: torch.Tensor, before: torch.Tensor) -> bool:
    """Whether a generator did not come from one state to the other: it has another seed, or is at an earlier place in the stream.

    False where that is too far from the stream's beginning to be found.
    """
    if not torch.equal(now[SEED], before[SEED]):
        return True
    if torch.equal(now[BLOCK], before[BLOCK]):
        return _number(now[TAKEN]) < _number(before[TAKEN])
    generator = torch.Generator()
    generator.manual_seed(_number(now[SEED]) % 2**64)
    numbers = torch.empty(624, dtype=torch.int32)
    for _ in range(BLOCKS):
        block = generator.get_state()[BLOCK]
        if torch.equal(block, now[BLOCK]):
            return True
        if torch.equal(block, before[BLOCK]):
            return False
        numbers.random_(generator=generator)
    return False


def _number(eight: torch.Tensor) -> int:
    return int(eight.clone().view(torch.int64))
