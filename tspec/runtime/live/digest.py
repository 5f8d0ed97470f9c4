"""A 64-bit hash of a tensor's elements and their order, the same on every device.

The elements' bytes in logical (row-major) order are read as 64-bit words. Up to `SMALL` words are
mixed one by one with their place, many tensors in one go. Of longer tensors, wrap-around column
sums at two prime widths are taken first (additions only), and the sums are mixed with their
places. All arithmetic is exact modulo 2^64, so the order of addition, and with it the device and
the number of threads, does not matter. Words that change places are seen unless the distance of
both is a multiple of the product of the widths, 256,027 words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch

SMALL = 4096
"""The greatest number of words for which a tensor is mixed directly (8,192 float32)."""
WIDTHS = (503, 509)
BLOCK = math.prod(WIDTHS)
"""Words per block.

A CPU sums each block at both widths, one after the other; 2 MB keeps the second pass in the cache.
"""
BATCH = 1 << 18
"""Words that are mixed at once: 2 MiB, so that they stay in the cache."""
STACKED = 1 << 15
"""The greatest number of words of a long tensor that is summed together with others of its length. Below it, a call of torch
takes longer than the additions that it makes.
"""


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


_STEP = _signed(0x9E3779B97F4A7C15)
_FIRST = _signed(0xFF51AFD7ED558CCD)
_SECOND = _signed(0xC4CEB9FE1A85EC53)
MIXING = (_STEP, _FIRST, _SECOND)
"""Odd factors by which words are multiplied."""
_LOW32 = 0xFFFFFFFF
_LOW35 = (1 << 35) - 1


def _mix(words: torch.Tensor) -> torch.Tensor:
    """Mix 64-bit words in place.

    A bijection in which each input bit reaches half of the output bits.
    """
    shifted = words >> 32
    words.bitwise_xor_(shifted.bitwise_and_(_LOW32)).mul_(_FIRST)
    torch.bitwise_right_shift(words, 29, out=shifted)
    words.bitwise_xor_(shifted.bitwise_and_(_LOW35)).mul_(_SECOND)
    torch.bitwise_right_shift(words, 32, out=shifted)
    return words.bitwise_xor_(shifted.bitwise_and_(_LOW32))


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
    size = BLOCK if words.device.type == "cpu" else count
    sums = _column_sums(words[:size])
    for begin in range(size, count, size):
        sums += _column_sums(words[begin : begin + size])
    return sums


def _column_sums(words: torch.Tensor) -> torch.Tensor:
    """For each width, the words in rows of it, the last one filled up with zeros: the sum of each column. Of words with a
    leading dimension, for each index of it.
    """
    count = words.shape[-1]
    sums = []
    for width in WIDTHS:
        whole = count - count % width
        total = words.narrow(-1, 0, whole).view(*words.shape[:-1], -1, width).sum(-2)
        total.narrow(-1, 0, count - whole).add_(words.narrow(-1, whole, count - whole))
        sums.append(total)
    return torch.cat(sums, -1)


def _short_of_long(tensors: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
    """Index -> the words that stand for it, of the long tensors. Those of one length are summed together."""
    found: dict[int, torch.Tensor] = {}
    alike: dict[int, list[int]] = {}
    words: dict[int, torch.Tensor] = {}
    for index, tensor in enumerate(tensors):
        if tensor.numel() * tensor.element_size() > 8 * SMALL:
            words[index] = held = words_of(tensor)
            alike.setdefault(held.numel(), []).append(index)
    for count, indices in alike.items():
        at_once = BATCH // count if count <= STACKED else 1
        for begin in range(0, len(indices), at_once):
            some = indices[begin : begin + at_once]
            if len(some) == 1:
                found[some[0]] = _short(words[some[0]])
            else:
                rows = _column_sums(torch.stack([words[index] for index in some]))
                found.update(zip(some, rows.unbind(), strict=True))
    return found


def digests(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Digests of tensors on one device, as an int64 tensor on it. Any shapes, layouts and dtypes."""
    if not tensors:
        return torch.empty(0, dtype=torch.int64)
    device = tensors[0].device
    sizes = tuple([tensor.numel() for tensor in tensors])
    widths = tuple([tensor.element_size() for tensor in tensors])
    sums = [
        _mixed_sums(tensors[begin:end], lengths, device)
        for begin, end, lengths in _batches(sizes, widths)
    ]
    return _mix((torch.cat(sums) if len(sums) > 1 else sums[0]) ^ _sizes(sizes, device))


@lru_cache(maxsize=256)
def _batches(
    sizes: tuple[int, ...], widths: tuple[int, ...]
) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """The batches in which words are mixed: index of the first tensor, index after the last one,
    and number of words of each tensor.
    """
    lengths = [_length(size, width) for size, width in zip(sizes, widths, strict=True)]
    found, begin = [], 0
    while begin < len(lengths):
        end, total = begin + 1, lengths[begin]
        while end < len(lengths) and total + lengths[end] <= BATCH:
            total += lengths[end]
            end += 1
        found.append((begin, end, tuple(lengths[begin:end])))
        begin = end
    return tuple(found)


def _length(size: int, width: int) -> int:
    words = (size * width + 7) // 8
    return words if words <= SMALL else sum(WIDTHS)


def _words(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The words that stand for each of the tensors, one after the other.

    Short neighbours of one dtype are copied at once, each filled up to whole words.
    """
    done: list[torch.Tensor] = []
    pieces: list[torch.Tensor] = []
    long = _short_of_long(tensors)
    dtype = tensors[0].dtype
    pad = _padding(dtype, tensors[0].device)
    fit = 0 if pad is None else pad.numel() + 1
    for index, tensor in enumerate(tensors):
        size = tensor.numel()
        if index in long or pad is None or tensor.dtype != dtype or tensor.is_neg():
            if pieces:
                done.append(torch.cat(pieces).view(torch.int64))
                pieces = []
            done.append(long[index] if index in long else words_of(tensor))
            continue
        pieces.append(tensor.reshape(-1))
        if size % fit:
            pieces.append(pad[: fit - size % fit])
    if pieces:
        done.append(torch.cat(pieces).view(torch.int64))
    return done[0] if len(done) == 1 else torch.cat(done)


@lru_cache(maxsize=32)
def _padding(dtype: torch.dtype, device: torch.device) -> torch.Tensor | None:
    """Zeros that fill up a word, for dtypes that are smaller than a word."""
    if dtype.is_complex or dtype == torch.bool or (dtype.is_floating_point and dtype.itemsize == 1):
        return None
    return torch.zeros(8 // dtype.itemsize - 1, dtype=dtype, device=device)


@lru_cache(maxsize=64)
def _sizes(sizes: tuple[int, ...], device: torch.device) -> torch.Tensor:
    return _mix(torch.tensor(sizes, dtype=torch.int64).add_(1).mul_(_FIRST)).to(device)


def _mixed_sums(
    tensors: Sequence[torch.Tensor], lengths: tuple[int, ...], device: torch.device
) -> torch.Tensor:
    """For each tensor, the sum of its words after mixing each with its place."""
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
    """The hashes of positions, for tensors that follow each other."""
    places = _places(1 << max(lengths).bit_length(), device)
    return torch.cat([places[:length] for length in lengths])


@lru_cache(maxsize=64)
def _edges(lengths: tuple[int, ...], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    ends = torch.tensor(lengths, dtype=torch.int64).cumsum(0)
    starts = torch.cat((ends.new_zeros(1), ends[:-1]))
    return ends.to(device), starts.to(device)
