"""Features of many tensors at once: digest, norm, extremes, counts, and what needs no look at the data.

Tensors are grouped by device and dtype, and each kind of feature of a group comes back in one transfer. On a GPU
the groups of `cuda.reads.KINDS` are read together, all features by a few kernels and in one transfer. Nothing here draws random numbers, builds a
graph or writes to a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import compress
from types import ModuleType

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from tspec.builtin.features import FEATURES, OF_ELEMENTS
from tspec.runtime.edges import Missing
from tspec.runtime.live.cuda import reads
from tspec.runtime.live.digest import digests
from tspec.runtime.live.placed import ORDINARY, local
from tspec.runtime.transfers import RowInTransfer
from tspec.values import Datum


@cache
def _text(kind: torch.dtype | torch.device | torch.layout) -> str:
    return str(kind).removeprefix("torch.")


PLAIN: Mapping[str, Callable[[torch.Tensor], Datum]] = {
    "numel": lambda t: Missing.NOT_RECORDED if t.is_nested else local(t).numel(),
    "shape": lambda t: Missing.NOT_RECORDED if t.is_nested else tuple(local(t).shape),
    "dtype": lambda t: _text(t.dtype),
    "device": lambda t: _text(t.device),
    "memory_format": lambda t: memory_format(t),
    "requires_grad": lambda t: bool(t.requires_grad),
    "object": lambda t: id(t),
}

COUNTED = frozenset(
    {
        torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.bool, torch.uint8,
        torch.int8, torch.int16, torch.int32, torch.int64, torch.complex64, torch.complex128,
    }
)  # fmt: skip
"""Dtypes whose zeros torch counts itself."""
WITHOUT_FLOAT64 = frozenset(("mps",))
"""Kinds of devices that do not compute in float64. Their tensors are read on the CPU."""
EXACT = 65_536
"""The number of elements up to which norms and sums are computed in float64. On a CPU, this limit
is `CHUNK` for norms.
"""
BLOCK = 1 << 17
"""Elements of a CPU's tensor that are compared with zero at once: results stay in the cache, and their sum is exact in float32."""
CHUNK = 4096
"""The row length for longer tensors: rows are reduced in the tensor's precision, their results in
float64.
"""


def memory_format(tensor: torch.Tensor) -> str | Missing:
    """`contiguous_format`, `channels_last`, `channels_last_3d` or `strided`; not recorded inside of `vmap`."""
    if tensor.layout != torch.strided:
        return _text(tensor.layout)
    if not torch._C._has_storage(tensor):
        return Missing.NOT_RECORDED
    if tensor.is_contiguous():
        return "contiguous_format"
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return "channels_last"
    if tensor.dim() == 5 and tensor.is_contiguous(memory_format=torch.channels_last_3d):
        return "channels_last_3d"
    return "strided"


def features(
    tensors: Sequence[Datum], names: Sequence[str]
) -> list[dict[str, Datum] | RowInTransfer]:
    """The features of these names for each tensor. A handle that is Missing gives that value for
    each name. Those of a tensor on a GPU are in transfer: the process waits where it uses them.

    Names such as `per:row` are those of `axis_feature`. Floats are float64, `zeros` counts exact
    zeros, `digest` is a signed 64-bit int. A tensor that cannot be read (on the meta device, or
    lazy) is not recorded.
    """
    found: list[dict[str, Datum]] = []
    in_transfer: dict[int, RowInTransfer] = {}
    readable: dict[tuple[torch.device, torch.dtype | None], list[tuple[int, torch.Tensor]]] = {}
    wanted, plain = _split(tuple(names))
    if not wanted:
        return [_plain_row(tensor, names, plain) for tensor in tensors]
    at_once = reads.READ.issuperset(wanted)
    with torch.no_grad(), torch._C.DisableTorchFunction():
        for index, tensor in enumerate(tensors):
            if not isinstance(tensor, torch.Tensor) or isinstance(tensor, UninitializedTensorMixin):
                missing = tensor if isinstance(tensor, Missing) else Missing.NOT_RECORDED
                found.append(dict.fromkeys(names, missing))
                continue
            found.append({name: function(tensor) for name, function in plain} if plain else {})
            part = local_part(tensor)
            if part is None:
                found[index].update(dict.fromkeys(wanted, Missing.NOT_RECORDED))
            else:
                if part.device.type in WITHOUT_FLOAT64:
                    part = part.cpu()
                on_gpu = part.is_cuda and at_once and reads.reads(part.device, part.dtype)
                key = (part.device, None if on_gpu else part.dtype)
                readable.setdefault(key, []).append((index, part))
        for (_, dtype), group in readable.items():
            held = [part for _, part in group]
            if dtype is None:
                later = reads.read(held, wanted)
                for place, (index, _) in enumerate(group):
                    in_transfer[index] = RowInTransfer(found[index], wanted, later, place)
                continue
            columns = _columns(held, wanted)
            for name in wanted:
                for (index, _), value in zip(group, columns[name], strict=True):
                    found[index][name] = value
    if in_transfer:
        return [in_transfer.get(index, row) for index, row in enumerate(found)]
    return found  # type: ignore[return-value]


_Plain = tuple[tuple[str, Callable[[torch.Tensor], Datum]], ...]


@cache
def _split(names: tuple[str, ...]) -> tuple[tuple[str, ...], _Plain]:
    """Split features into those that read elements, and the others."""
    plain = tuple((name, PLAIN[name]) for name in names if name in PLAIN)
    return tuple(name for name in names if name in OF_ELEMENTS), plain


def _plain_row(tensor: Datum, names: Sequence[str], plain: _Plain) -> dict[str, Datum]:
    if isinstance(tensor, torch.Tensor) and not isinstance(tensor, UninitializedTensorMixin):
        return {name: function(tensor) for name, function in plain}
    missing = tensor if isinstance(tensor, Missing) else Missing.NOT_RECORDED
    return dict.fromkeys(names, missing)


def local_part(tensor: torch.Tensor) -> torch.Tensor | None:
    """The elements that this rank holds, dense and without a graph; None if there are none to read."""
    held = tensor
    if type(tensor) not in ORDINARY:
        held = local(tensor)
        if _dispatches(type(held)):
            return None
    if held.is_meta or held.is_nested:
        return None
    if held.layout == torch.strided and not torch._C._has_storage(held):
        return None  # inside of `vmap`, `grad` and the like
    part = held.detach()
    if part.layout != torch.strided:
        part = part.to_dense()
    if part.is_quantized:
        part = part.int_repr()
    if part.numel() and not part.untyped_storage().nbytes():
        return None  # its memory was given back, as FSDP does between uses
    return part.as_subclass(torch.Tensor) if type(part) is not torch.Tensor else part


def _dispatches(kind: type[torch.Tensor]) -> bool:
    """True if the tensor's elements, if any, are in another object: fake tensors and other
    wrappers.
    """
    return kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def _columns(
    tensors: Sequence[torch.Tensor], wanted: Sequence[str]
) -> Mapping[str, Sequence[Datum]]:
    """Columns of features of tensors on one device, of one dtype."""
    columns: dict[str, Sequence[Datum]] = {}
    if "digest" in wanted:
        columns["digest"] = digests(tensors).tolist()
    if "zeros" in wanted:
        columns["zeros"] = _zeros(tensors)
    rest = [name for name in wanted if name not in ("digest", "zeros")]
    if rest:
        columns.update(_numbers(_real(tensors), rest))
    return columns


def _zeros(tensors: Sequence[torch.Tensor]) -> list[int]:
    """The number of elements equal to 0.0 or -0.0, for each tensor."""
    first = tensors[0]
    counted = tensors if first.dtype in COUNTED else _real(tensors)
    in_blocks = first.device.type == "cpu" and first.is_floating_point() and first.itemsize <= 4
    counts = torch.stack(
        [
            _nonzero(t) if in_blocks and t.numel() > EXACT else torch.count_nonzero(t)
            for t in counted
        ]
    )
    return [t.numel() - int(n) for t, n in zip(tensors, counts.tolist(), strict=True)]


def _nonzero(tensor: torch.Tensor) -> torch.Tensor:
    """The result of `count_nonzero`, in half its time on a CPU: comparisons that give floats are
    vectorised.
    """
    differs = torch.empty(BLOCK, dtype=torch.float32, device=tensor.device)
    found = []
    for block in torch.split(tensor.reshape(-1), BLOCK):
        compared = torch.ne(block, 0, out=differs[: len(block)])
        found.append(torch.dot(compared, compared))
    return torch.stack(found).sum(dtype=torch.float64).long()


def _real(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Convert tensors to dtypes on which norms work: complex numbers as pairs, integers and small
    floats as float32 or float64.
    """
    first = tensors[0].dtype
    if first.is_complex:
        return [torch.view_as_real(t.resolve_conj()) for t in tensors]
    if first in (torch.float32, torch.float64):
        return list(tensors)
    if first.is_floating_point:
        return [t.float() for t in tensors]
    return [t.double() for t in tensors]


def _numbers(tensors: Sequence[torch.Tensor], wanted: Sequence[str]) -> dict[str, Sequence[Datum]]:
    columns: dict[str, Sequence[Datum]] = {}
    names = set(wanted)
    if names & {"norm", "finite"}:
        columns["norm"], columns["finite"] = _norms_and_finite(tensors)
    if names & {"sum", "mean"}:
        sums = _sums(tensors)
        columns["sum"] = sums
        columns["mean"] = [
            total / t.numel() if t.numel() else math.nan
            for t, total in zip(tensors, sums, strict=True)
        ]
    if "std" in names:
        columns["std"] = [_std(t) for t in tensors]
    if names & {"min", "max"}:
        columns["min"], columns["max"] = _extremes(tensors)
    for name in names:
        live = FEATURES[name].live
        if live is not None:
            columns[name] = _each(live, tensors)
    return columns


def _norms(tensors: Sequence[torch.Tensor]) -> list[float]:
    on_cpu = bool(tensors) and tensors[0].device.type == "cpu"
    limit = CHUNK if on_cpu else EXACT  # a CPU takes norms in float64 in four times the time
    is_small = [t.numel() <= limit for t in tensors]
    small = list(compress(tensors, is_small))
    exact: list[float] = (
        torch.stack(torch._foreach_norm(small, 2, dtype=torch.float64)).tolist() if small else []
    )
    if len(small) == len(tensors):
        return exact
    norms, large = iter(exact), iter(_large_norms([t for t in tensors if t.numel() > limit]))
    return [next(norms) if each else next(large) for each in is_small]


def _large_norms(tensors: Sequence[torch.Tensor]) -> list[float]:
    if not tensors:
        return []
    norms = []
    for tensor in tensors:
        rows, tail = _rows(tensor)
        parts = torch.linalg.vector_norm(rows, dim=1).double()
        if tail.numel():
            parts = torch.cat((parts, torch.linalg.vector_norm(tail).double().reshape(1)))
        norms.append(torch.linalg.vector_norm(parts))
    return [float(norm) for norm in torch.stack(norms).tolist()]


def _rows(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    flat = tensor.reshape(-1)
    count = flat.numel() // CHUNK
    return flat[: count * CHUNK].view(count, CHUNK), flat[count * CHUNK :]


def _norms_and_finite(tensors: Sequence[torch.Tensor]) -> tuple[list[float], list[bool]]:
    """Norms, and whether all elements are finite. A norm may overflow where every element is finite."""
    norms = _norms(tensors)
    finite = [math.isfinite(norm) for norm in norms]
    for index, tensor in enumerate(tensors):
        if not finite[index]:
            finite[index] = bool(torch.isfinite(tensor).all())
            if finite[index]:
                norms[index] = float(torch.linalg.vector_norm(tensor.double()))
    return norms, finite


def _sums(tensors: Sequence[torch.Tensor]) -> list[float]:
    totals = []
    for tensor in tensors:
        if tensor.numel() <= EXACT or tensor.dtype == torch.float64:
            totals.append(tensor.sum(dtype=torch.float64))
        else:
            rows, tail = _rows(tensor)
            totals.append(rows.sum(1).sum(dtype=torch.float64) + tail.sum(dtype=torch.float64))
    return [float(total) for total in torch.stack(totals).tolist()]


def _std(tensor: torch.Tensor) -> float:
    """The population's standard deviation, NaN of nothing."""
    return float(torch.std(tensor.double(), correction=0)) if tensor.numel() else math.nan


def _each(
    live: Callable[[ModuleType, torch.Tensor], torch.Tensor], tensors: Sequence[torch.Tensor]
) -> list[Datum]:
    """A feature that its row computes; of no elements NaN if it is a float."""
    found: list[Datum] = torch.stack([live(torch, tensor) for tensor in tensors]).tolist()
    return found


def _extremes(tensors: Sequence[torch.Tensor]) -> tuple[list[float], list[float]]:
    both = [each for t in tensors if t.numel() for each in torch.aminmax(t)]
    known = iter(torch.stack(both).double().tolist() if both else ())
    pairs = [(next(known), next(known)) if t.numel() else (math.nan, math.nan) for t in tensors]
    return [least for least, _ in pairs], [most for _, most in pairs]
