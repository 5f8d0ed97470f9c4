"""A 64-bit hash of a tensor's elements and their order, the same on every device.

The elements' bytes in logical (row-major) order are read as 64-bit words. Up to `SMALL` words are
mixed one by one with their place, many tensors in one go. Of longer tensors, wrap-around column
sums at two prime widths are taken first (four reads of the memory, no multiplication), and the
sums are mixed with their places. All arithmetic is exact modulo 2^64, so the order of addition,
and with it the device and the number of threads, does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch

SMALL = 16_384
"""Words up to which a tensor is mixed directly (32,768 float32)."""
WIDTHS = (1009, 1021)
BATCH = 1 << 18
"""Words that are mixed at once: 2 MiB, so that they stay in the cache."""


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


_STEP = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xFF51AFD7ED558CCD)
_SECOND = _signed(0xC4CEB9FE1A85EC53)
_LOW32 = 0xFFFFFFFF
_LOW35 = (1 << 35) - 1


def _mix(words: torch.Tensor) -> torch.Tensor:
    """A bijection of 64-bit words in which each bit of the input reaches half of the output; in place."""
    words ^= (words >> 32).bitwise_and_(_LOW32)
    words *= _FIRST
    words ^= (words >> 29).bitwise_and_(_LOW35)
    words *= _SECOND
    words ^= (words >> 32).bitwise_and_(_LOW32)
    return words


@lru_cache(maxsize=8)
def _places(count: int, device: torch.device) -> torch.Tensor:
    """A hash of each of the places 0 to count - 1."""
    places = torch.arange(1, count + 1, dtype=torch.int64, device=device)
    return _mix(places * _STEP)


def words_of(tensor: torch.Tensor) -> torch.Tensor:
    """The elements' bytes in logical order as int64 words, zeros after the last byte."""
    flat = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1)
    if flat.numel() == 0:
        return torch.empty(0, dtype=torch.int64, device=flat.device)
    size = flat.element_size()
    if (
        size * flat.numel() % 8 == 0
        and size * flat.storage_offset() % 8 == 0
        and flat.dtype != torch.bool
    ):
        return (
            flat.view(torch.int64)
            if size <= 8
            else torch.view_as_real(flat).reshape(-1).view(torch.int64)
        )
    data = flat.view(torch.uint8)
    whole = torch.zeros((data.numel() + 7) // 8 * 8, dtype=torch.uint8, device=data.device)
    whole[: data.numel()] = data
    return whole.view(torch.int64)


def _short(words: torch.Tensor) -> torch.Tensor:
    """Words that stand for the tensor: its own, or the column sums of a long one."""
    count = words.numel()
    if count <= SMALL:
        return words
    sums = []
    for width in WIDTHS:
        rows = count // width
        total = words[: rows * width].view(rows, width).sum(0)
        tail = words[rows * width :]
        total[: tail.numel()] += tail
        sums.append(total)
    return torch.cat(sums)


def digests(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Digests of tensors on one device, as an int64 tensor on it. Any shapes, layouts and dtypes."""
    if not tensors:
        return torch.empty(0, dtype=torch.int64)
    device = tensors[0].device
    sums: list[torch.Tensor] = []
    begin = 0
    while begin < len(tensors):
        end, total = begin, 0
        while end < len(tensors) and (end == begin or total + _length(tensors[end]) <= BATCH):
            total += _length(tensors[end])
            end += 1
        sums.append(_mixed_sums(tensors[begin:end], device))
        begin = end
    sizes = tuple([tensor.numel() for tensor in tensors])
    return _mix((torch.cat(sums) if len(sums) > 1 else sums[0]) ^ _sizes(sizes, device))


def _length(tensor: torch.Tensor) -> int:
    """How many words stand for a tensor."""
    words = (tensor.numel() * tensor.element_size() + 7) // 8
    return words if words <= SMALL else sum(WIDTHS)


def _words(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The words that stand for each of the tensors, one after the other."""
    first = tensors[0].dtype
    pad = _padding(first, tensors[0].device)
    if pad is None or any(_is_apart(tensor, first) for tensor in tensors):
        return torch.cat([_short(words_of(tensor)) for tensor in tensors])
    # One copy for all: each tensor is filled up to whole words.
    pieces: list[torch.Tensor] = []
    fit = pad.numel() + 1
    for tensor in tensors:
        pieces.append(tensor.reshape(-1))
        over = tensor.numel() % fit
        if over:
            pieces.append(pad[: fit - over])
    return torch.cat(pieces).view(torch.int64)


def _is_apart(tensor: torch.Tensor, dtype: torch.dtype) -> bool:
    """It cannot be copied together with others."""
    long = tensor.numel() * tensor.element_size() > 8 * SMALL
    return long or tensor.dtype != dtype or tensor.is_neg()


@lru_cache(maxsize=32)
def _padding(dtype: torch.dtype, device: torch.device) -> torch.Tensor | None:
    """Zeros that fill up a word, for dtypes of which several make one."""
    if dtype.is_complex or dtype == torch.bool:
        return None
    return torch.zeros(8 // dtype.itemsize - 1, dtype=dtype, device=device)


@lru_cache(maxsize=64)
def _sizes(sizes: tuple[int, ...], device: torch.device) -> torch.Tensor:
    return _mix(torch.tensor(sizes, dtype=torch.int64).add_(1).mul_(_FIRST)).to(device)


def _mixed_sums(tensors: Sequence[torch.Tensor], device: torch.device) -> torch.Tensor:
    """For each tensor, the sum of its words after mixing each with its place."""
    lengths = tuple([_length(tensor) for tensor in tensors])
    if sum(lengths) == 0:
        return torch.zeros(len(tensors), dtype=torch.int64, device=device)
    mixed = _words(tensors)
    mixed = _keys(lengths, device).bitwise_xor(mixed)
    mixed *= _STEP
    _mix(mixed)
    if len(tensors) == 1:
        return mixed.sum().reshape(1)
    ends, starts = _edges(lengths, device)
    running = torch.cat((_keys((1,), device).new_zeros(1), mixed.cumsum(0)))
    return running[ends] - running[starts]


@lru_cache(maxsize=32)
def _keys(lengths: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """The places' hashes for tensors that lie one after the other."""
    places = _places(1 << max(lengths).bit_length(), device)
    return torch.cat([places[:length] for length in lengths])


@lru_cache(maxsize=64)
def _edges(lengths: tuple[int, ...], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    ends = torch.tensor(lengths, dtype=torch.int64).cumsum(0)
    starts = torch.cat((ends.new_zeros(1), ends[:-1]))
    return ends.to(device), starts.to(device)
