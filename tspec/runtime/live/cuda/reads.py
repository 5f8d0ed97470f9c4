"""Digests and statistics of many tensors on one device, by a few kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from typing import Any, NamedTuple

import torch

from tspec.runtime.live import digest
from tspec.runtime.live.cuda.transfer import HostCopy
from tspec.runtime.messages.say import warn
from tspec.runtime.transfers import ColumnsInTransfer
from tspec.values import Datum

CHUNK = 1 << 16
"""Elements of which one program computes the statistics."""
SPAN = 1 << 15
"""64-bit words that one program adds to column sums."""
BLOCK = 1024
"""Elements that a program reads at once."""
ROWS, LANES = 4, 512
"""Words that a program reads at once, in rows of one of `digest.WIDTHS`."""

KINDS = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "uint8",
}
"""Dtypes that are read here, and Triton's names of them."""


class Statistics(NamedTuple):
    """Statistics of a tensor's elements, in float64."""

    total: float
    squares: float
    least: float
    """The smallest element that is not NaN; infinite if there is none."""
    most: float
    zeros: float
    nans: float
    deviations: float
    """The sum of the squares of the deviations from the mean, if it was asked for."""


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _extreme(found: Statistics, count: int, value: float) -> float:
    return math.nan if found.nans or not count else value


FEATURES: Mapping[str, Callable[[Statistics, int], Datum]] = {
    "norm": lambda found, count: _root(found.squares),
    "finite": lambda found, count: (
        not count or (found.nans == 0 and math.isfinite(found.least) and math.isfinite(found.most))
    ),
    "zeros": lambda found, count: int(found.zeros),
    "nans": lambda found, count: int(found.nans),
    "sum": lambda found, count: found.total,
    "mean": lambda found, count: found.total / count if count else math.nan,
    "std": lambda found, count: _root(found.deviations / count) if count else math.nan,
    "min": lambda found, count: _extreme(found, count, found.least),
    "max": lambda found, count: _extreme(found, count, found.most),
    "absmax": lambda found, count: _extreme(found, count, max(-found.least, found.most)),
}
"""Features that follow from the statistics of a tensor, and its number of elements."""


READ = frozenset(("digest", *FEATURES))
"""Features that are read here."""


def reads(device: torch.device, dtype: torch.dtype) -> bool:
    """True if tensors of this dtype are read here on the device."""
    return dtype in KINDS and _compiles(device)


@cache
def _compiles(device: torch.device) -> bool:
    """True if Triton compiles for the device. It needs a C compiler, which not every machine has."""
    try:
        read([torch.zeros(2 * digest.SMALL + 2, device=device)], ("digest", "std")).read()
    except Exception as fault:
        warn(
            "Triton cannot compile here, so tensors on the GPU are read one by one, which takes longer:"
            f" {type(fault).__name__}: {str(fault).strip().partition(chr(10))[0]}"
        )
        return False
    return True


def read(tensors: Sequence[torch.Tensor], wanted: Sequence[str]) -> ColumnsInTransfer:
    """Features of tensors on one device, of dtypes in `KINDS`. They come back in one transfer, which is started here."""
    rest = [name for name in wanted if name != "digest"]
    places = _by_dtype(tensors) if rest else {}
    plain = [_plain(tensor) for tensor in tensors]
    with _on(tensors[0].device):
        parts = [digests(plain)] if "digest" in wanted else []
        for dtype, chosen in places.items():
            group = [plain[place] for place in chosen]
            found = statistics(group, dtype, deviations="std" in wanted)
            parts.append(found.view(torch.int64).reshape(-1))
        copy = HostCopy(torch.cat(parts) if len(parts) > 1 else parts[0])
    sizes = [tensor.numel() for tensor in tensors]
    order = [place for chosen in places.values() for place in chosen]
    return ColumnsInTransfer(copy, lambda: _columns(copy.read(), wanted, sizes, order))


def _columns(
    held: torch.Tensor, wanted: Sequence[str], sizes: Sequence[int], order: Sequence[int]
) -> dict[str, Sequence[Datum]]:
    """Columns of features, from what the kernels computed.

    `order` has the places of the tensors in the order of their statistics.
    """
    columns: dict[str, Sequence[Datum]] = {}
    with torch.no_grad(), torch._C.DisableTorchFunction():
        if "digest" in wanted:
            columns["digest"] = held[: len(sizes)].tolist()
            held = held[len(sizes) :]
        rows = held.view(torch.float64).view(len(sizes), -1).tolist() if order else ()
    pairs = dict(zip(order, map(Statistics._make, rows), strict=True))
    for name in wanted:
        if name != "digest":
            feature = FEATURES[name]
            columns[name] = [feature(pairs[place], size) for place, size in enumerate(sizes)]
    return columns


def _by_dtype(tensors: Sequence[torch.Tensor]) -> dict[torch.dtype, list[int]]:
    places: dict[torch.dtype, list[int]] = {}
    for place, tensor in enumerate(tensors):
        places.setdefault(tensor.dtype, []).append(place)
    return places


def _on(device: torch.device) -> AbstractContextManager[Any]:
    """Triton starts kernels on the current device."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in logical order, one after the other in memory."""
    return tensor.resolve_neg().contiguous() if tensor.is_neg() else tensor.contiguous()


def statistics(
    tensors: Sequence[torch.Tensor], dtype: torch.dtype, deviations: bool = False
) -> torch.Tensor:
    """The statistics of contiguous tensors of one dtype: `[len(tensors), 7]` float64, on their device."""
    import triton.language as tl

    from tspec.runtime.live.cuda import kernels

    device, count, width = tensors[0].device, len(tensors), len(Statistics._fields)
    chunks = _chunks(tuple([tensor.numel() for tensor in tensors]), CHUNK, device)
    [addresses] = _uploaded([[tensor.data_ptr() for tensor in tensors]], device)
    found = torch.empty(count, width, dtype=torch.float64, device=device)
    means = torch.empty(count, dtype=torch.float64, device=device)
    partial = torch.zeros(chunks.number, width, dtype=torch.float64, device=device)
    kind = getattr(tl, KINDS[dtype])
    for centred in (False, True) if deviations else (False,):
        if chunks.number:
            kernels.chunk_statistics[(chunks.number,)](
                *(addresses, chunks.sizes, chunks.tensors, chunks.begins, means, partial),
                *(kind, centred, CHUNK, BLOCK, width),
            )
        kernels.tensor_statistics[(count,)](
            partial, chunks.firsts, chunks.sizes, found, means, 128, width
        )
    return found


def digests(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Digests of contiguous tensors, as an int64 tensor on their device: those of `digest.digests`."""
    from tspec.runtime.live.cuda import kernels

    device = tensors[0].device
    held = [tensor if _is_whole(tensor) else digest.words_of(tensor) for tensor in tensors]
    words = [tensor.numel() * tensor.element_size() // 8 for tensor in held]
    addresses = [tensor.data_ptr() for tensor in held]
    long = [place for place, count in enumerate(words) if count > digest.SMALL]
    width = sum(digest.WIDTHS)
    sums = torch.zeros(len(long), width, dtype=torch.int64, device=device)
    mixed, lengths = list(addresses), list(words)
    for slot, place in enumerate(long):
        mixed[place], lengths[place] = sums.data_ptr() + 8 * width * slot, width
    sizes = [tensor.numel() for tensor in tensors]
    if long:
        chunks = _chunks(tuple([words[place] for place in long]), SPAN, device)
        [table] = _uploaded([[addresses[place] for place in long]], device)
        kernels.column_sums[(chunks.number,)](
            *(table, chunks.sizes, chunks.tensors, chunks.begins, sums),
            *(SPAN, ROWS, LANES, *digest.WIDTHS),
        )
    table, counts, elements = _uploaded([mixed, lengths, sizes], device)
    found = torch.empty(len(tensors), dtype=torch.int64, device=device)
    kernels.mixed_words[(len(tensors),)](table, counts, elements, found, *digest.MIXING, BLOCK)
    return found


def _is_whole(tensor: torch.Tensor) -> bool:
    """The tensor's memory is whole 64-bit words."""
    return tensor.numel() * tensor.element_size() % 8 == 0 and tensor.data_ptr() % 8 == 0


class Chunks(NamedTuple):
    """Tensors that lie one after the other, in chunks of one size: which chunk is of which tensor."""

    number: int
    sizes: torch.Tensor
    """`[tensors]`: elements of each tensor."""
    firsts: torch.Tensor
    """`[tensors + 1]`: the first chunk of each tensor, and the number of chunks."""
    tensors: torch.Tensor
    """`[number]`: the tensor of each chunk."""
    begins: torch.Tensor
    """`[number]`: the first element of each chunk, within its tensor."""


@lru_cache(maxsize=256)
def _chunks(sizes: tuple[int, ...], chunk: int, device: torch.device) -> Chunks:
    of_each = torch.tensor([-(-size // chunk) for size in sizes], dtype=torch.int64)
    firsts = torch.cat((of_each.new_zeros(1), of_each.cumsum(0)))
    tensors = torch.repeat_interleave(torch.arange(len(sizes)), of_each)
    begins = (torch.arange(int(firsts[-1])) - firsts[tensors]) * chunk
    held = (torch.tensor(sizes, dtype=torch.int64), firsts, tensors, begins)
    return Chunks(len(tensors), *(each.to(device) for each in held))


def _uploaded(rows: Sequence[Sequence[int]], device: torch.device) -> torch.Tensor:
    """Integers on the device. The copy from pinned memory does not wait for the device."""
    on_gpu = device.type == "cuda"
    held = torch.tensor(rows, dtype=torch.int64, pin_memory=on_gpu)
    return held.to(device, non_blocking=True)
