"""The position of a random number generator in its stream: whether it restarted, or continues from
a kept state.

The state of a CPU generator (`at::CPUGeneratorImpl`) holds its seed and a block of 624 numbers of
the Mersenne twister, which are drawn in order. All blocks follow from the seed.
"""

from __future__ import annotations

import torch

SIZE = torch.Generator().get_state().numel()
"""The bytes of a generator's state."""
SEED, TAKEN, BLOCK = slice(0, 8), slice(16, 24), slice(24, 24 + 8 * 624)
"""The bytes of a state that hold the seed, the count of numbers drawn from the block, and the
block.
"""
BLOCKS = 20_000
"""The number of blocks of a stream that are searched."""


def is_state(value: object) -> bool:
    """True if `value` is the state of a CPU generator."""
    return (
        type(value) is torch.Tensor
        and value.dtype == torch.uint8
        and value.device.type == "cpu"
        and value.shape == (SIZE,)
    )


def began_anew(now: torch.Tensor, before: torch.Tensor) -> bool:
    """True if a generator did not reach `now` from `before`: its seed differs, or its position in
    the stream is earlier.

    False if a position is too far from the start of the stream to be found.
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
