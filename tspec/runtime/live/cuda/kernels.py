"""Triton kernels that read the elements of many tensors at once.

A table holds the address of each tensor. Long tensors are split into chunks, one for each program. No kernel depends on
the order in which programs run: statistics of chunks are combined in the order of the chunks, and digests are sums of
64-bit integers, which wrap around.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def chunk_statistics(
    addresses, sizes, tensor_of, begins, means, partial,
    KIND: tl.constexpr, CENTRED: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """The statistics of one chunk, in float64: a row of `partial`, in the order of `Statistics`.

    If `CENTRED`, `means` holds the mean of each tensor, and only the squares of the deviations from it are added.
    """
    chunk = tl.program_id(0)
    which = tl.load(tensor_of + chunk)
    begin = tl.load(begins + chunk)
    end = tl.minimum(begin + CHUNK, tl.load(sizes + which))
    data = tl.load(addresses + which).to(tl.pointer_type(KIND))
    lanes = tl.arange(0, BLOCK)
    row = partial + chunk.to(tl.int64) * COLUMNS
    squares = tl.zeros((BLOCK,), tl.float64)
    if CENTRED:
        mean = tl.load(means + which)
        for start in range(begin, end, BLOCK):
            index = start + lanes
            present = index < end
            x = tl.load(data + index, mask=present, other=0).to(tl.float64) - mean
            squares += tl.where(present, x * x, 0.0)
        tl.store(row + 6, tl.sum(squares))
    else:
        total = tl.zeros((BLOCK,), tl.float64)
        least = tl.full((BLOCK,), float("inf"), tl.float64)
        most = tl.full((BLOCK,), float("-inf"), tl.float64)
        zeros = tl.zeros((BLOCK,), tl.int32)
        nans = tl.zeros((BLOCK,), tl.int32)
        for start in range(begin, end, BLOCK):
            index = start + lanes
            present = index < end
            x = tl.load(data + index, mask=present, other=0).to(tl.float64)
            total += x
            squares += x * x
            is_nan = x != x
            known = present & (is_nan == 0)
            least = tl.minimum(least, tl.where(known, x, float("inf")))
            most = tl.maximum(most, tl.where(known, x, float("-inf")))
            zeros += (present & (x == 0)).to(tl.int32)
            nans += is_nan.to(tl.int32)
        tl.store(row, tl.sum(total))
        tl.store(row + 1, tl.sum(squares))
        tl.store(row + 2, tl.min(least))
        tl.store(row + 3, tl.max(most))
        tl.store(row + 4, tl.sum(zeros).to(tl.float64))
        tl.store(row + 5, tl.sum(nans).to(tl.float64))


@triton.jit
def tensor_statistics(
    partial, first_chunks, sizes, found, means, BLOCK: tl.constexpr, COLUMNS: tl.constexpr
):
    """Combine the rows of a tensor's chunks: a row of `found`, and its mean in `means`."""
    which = tl.program_id(0)
    begin, end = tl.load(first_chunks + which), tl.load(first_chunks + which + 1)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float64)
    squares = tl.zeros((BLOCK,), tl.float64)
    zeros = tl.zeros((BLOCK,), tl.float64)
    nans = tl.zeros((BLOCK,), tl.float64)
    deviations = tl.zeros((BLOCK,), tl.float64)
    least = tl.full((BLOCK,), float("inf"), tl.float64)
    most = tl.full((BLOCK,), float("-inf"), tl.float64)
    for start in range(begin, end, BLOCK):
        index = start + lanes
        present = index < end
        row = partial + index * COLUMNS
        total += tl.load(row, mask=present, other=0.0)
        squares += tl.load(row + 1, mask=present, other=0.0)
        least = tl.minimum(least, tl.load(row + 2, mask=present, other=float("inf")))
        most = tl.maximum(most, tl.load(row + 3, mask=present, other=float("-inf")))
        zeros += tl.load(row + 4, mask=present, other=0.0)
        nans += tl.load(row + 5, mask=present, other=0.0)
        deviations += tl.load(row + 6, mask=present, other=0.0)
    all_of_it = tl.sum(total)
    row = found + which * COLUMNS
    tl.store(row, all_of_it)
    tl.store(row + 1, tl.sum(squares))
    tl.store(row + 2, tl.min(least))
    tl.store(row + 3, tl.max(most))
    tl.store(row + 4, tl.sum(zeros))
    tl.store(row + 5, tl.sum(nans))
    tl.store(row + 6, tl.sum(deviations))
    tl.store(means + which, all_of_it / tl.maximum(tl.load(sizes + which), 1).to(tl.float64))


@triton.jit
def _mixed(words, FIRST: tl.constexpr, SECOND: tl.constexpr):
    """Mix 64-bit words: `tspec.runtime.live.digest._mix`."""
    words = (words ^ ((words >> 32) & 0xFFFFFFFF)) * FIRST
    words = (words ^ ((words >> 29) & 0x7FFFFFFFF)) * SECOND
    return words ^ ((words >> 32) & 0xFFFFFFFF)


@triton.jit
def _add_columns(
    data, begin, end, found, WIDTH: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr
):
    """Add the words from `begin` to `end` to the column sums at one width."""
    lanes, rows = tl.arange(0, LANES)[None, :], tl.arange(0, ROWS)[:, None]
    columns = tl.zeros((ROWS, LANES), tl.int64)
    for start in range(begin // WIDTH * WIDTH, end, ROWS * WIDTH):
        index = start + rows * WIDTH + lanes
        present = (lanes < WIDTH) & (index >= begin) & (index < end)
        columns += tl.load(data + index, mask=present, other=0)
    column = tl.arange(0, LANES)
    tl.atomic_add(found + column, tl.sum(columns, 0), mask=column < WIDTH, sem="relaxed")


@triton.jit
def column_sums(
    addresses, sizes, tensor_of, begins, sums,
    CHUNK: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
    NARROW: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Add one chunk of the words of a long tensor to its column sums, at both widths.

    The words of the chunk are read twice, the second time from a cache.
    """
    chunk = tl.program_id(0)
    which = tl.load(tensor_of + chunk)
    begin = tl.load(begins + chunk)
    end = tl.minimum(begin + CHUNK, tl.load(sizes + which))
    data = tl.load(addresses + which).to(tl.pointer_type(tl.int64))
    found = sums + which * (NARROW + WIDE)
    _add_columns(data, begin, end, found, NARROW, ROWS, LANES)
    _add_columns(data, begin, end, found + NARROW, WIDE, ROWS, LANES)


@triton.jit
def mixed_words(
    addresses, lengths, sizes, found,
    STEP: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The digest of each tensor, from the words that stand for it."""
    which = tl.program_id(0)
    length = tl.load(lengths + which)
    data = tl.load(addresses + which).to(tl.pointer_type(tl.int64))
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int64)
    for start in range(0, length, BLOCK):
        place = (start + lanes).to(tl.int64)
        present = place < length
        words = tl.load(data + place, mask=present, other=0)
        key = _mixed((place + 1) * STEP, FIRST, SECOND)
        total += tl.where(present, _mixed((key ^ words) * STEP, FIRST, SECOND), 0)
    size = _mixed((tl.load(sizes + which) + 1) * FIRST, FIRST, SECOND)
    tl.store(found + which, _mixed(tl.sum(total) ^ size, FIRST, SECOND))
