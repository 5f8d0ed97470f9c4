"""Features of tensors from a source, and those that only a live job can give: per row, cast, of a difference."""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeGuard

from tspec.builtin.features import FEATURES
from tspec.runtime.edges import Missing, StateSource
from tspec.runtime.tensors import TensorSample, handles
from tspec.runtime.transfers import RowInTransfer
from tspec.values import Datum

if TYPE_CHECKING:
    import torch

Features = Mapping[str, Datum]
CAST = ("bfloat16", "float16", "float32")
"""Dtypes to which `cast` is evaluated."""


def read_features(
    source: StateSource, tensors: Sequence[Datum], names: Sequence[str]
) -> Sequence[Features]:
    """The features of many tensors. Those that the source computes are read in one call.

    `norm/row`, `std/0`, `digest@cast` and copies are computed here from live tensors. For recorded
    tensors they are unknown.
    """
    plain, special = _split(tuple(names))
    rows = source.features(tensors, plain) if plain else [{} for _ in tensors]
    if not special:
        return rows
    return [
        {**row, **_special(source, tensor, special)}
        for row, tensor in zip(rows, tensors, strict=True)
    ]


@cache
def _split(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The features of a source, and those that are made here."""
    special = tuple(name for name in names if "/" in name or "@" in name)
    return tuple(name for name in names if name not in special), special


def read_samples(
    source: StateSource, tensors: Sequence[Datum], names: Sequence[str]
) -> Iterator[TensorSample]:
    """The same as samples, one for each tensor, in order."""
    rows = read_features(source, tensors, names) if names and tensors else [{} for _ in tensors]
    return iter([TensorSample(row) for _, row in zip(tensors, rows, strict=True)])


def read_more(
    source: StateSource,
    raw: Mapping[str, Datum],
    known: Mapping[str, Datum],
    names: tuple[str, ...],
) -> None:
    """Read more features of the tensors of a column that was read before, at the same instant."""
    new = handles(raw[subject] for subject in known)
    old = [seen for value in known.values() for seen in _seen_in(value)]
    rows = read_features(source, new, names) if new else ()
    for seen, row in zip(old, rows, strict=True):
        in_transfer = RowInTransfer in (seen.features.__class__, row.__class__)
        both = ChainMap(row, seen.features) if in_transfer else {**seen.features, **row}  # type: ignore[arg-type]
        seen.features = both


def _seen_in(value: Datum) -> Iterator[TensorSample]:
    if value.__class__ is TensorSample:
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _seen_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _seen_in(item)


def is_live(tensor: Datum) -> TypeGuard[torch.Tensor]:
    """Elements of the tensor can be read: of a running job, neither nested nor wrapped by `vmap` or `grad`.

    The memory of a tensor may have been given back, as FSDP does between uses: reading it would end the process.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor):
        return False
    if tensor.is_nested:
        return False
    if tensor.layout != torch.strided:
        return True
    has_storage = bool(torch._C._has_storage(tensor))
    return has_storage and (not tensor.numel() or tensor.untyped_storage().nbytes() > 0)


def _special(source: StateSource, tensor: Datum, names: Sequence[str]) -> dict[str, Datum]:
    if not is_live(tensor):
        missing = tensor if isinstance(tensor, Missing) else Missing.NOT_RECORDED
        return dict.fromkeys(names, missing)
    found: dict[str, Datum] = {}
    for name in names:
        feature, slash, cut = name.partition("/")
        if slash:
            found[name] = cut_feature(tensor, feature, cut)
            continue
        feature, _, way = name.partition("@")
        if way == "cast":
            found.update(_cast(source, tensor, feature))
        elif way == "copy":
            found[name] = tensor.detach().clone()
        elif way == "itself":
            found[name] = tensor.detach()
    return found


def _cast(source: StateSource, tensor: torch.Tensor, feature: str) -> dict[str, Datum]:
    import torch

    found: dict[str, Datum] = {}
    for dtype in CAST:
        [row] = source.features([tensor.detach().to(getattr(torch, dtype))], (feature, "numel"))
        found.update({f"{name}@{dtype}": value for name, value in row.items()})
    return found


def of_difference(source: StateSource, left: Datum, right: Datum, feature: str) -> Datum:
    """A feature of the difference of two live tensors of one shape. Distributed tensors must have
    the same placements.
    """
    if not is_live(left) or not is_live(right) or left.shape != right.shape:
        return Missing.NOT_RECORDED
    if type(left) is not type(right) or _placements(left) != _placements(right):
        return Missing.NOT_RECORDED
    difference = left.double() - right.to(left.device).double()
    [row] = source.features([difference], (feature, "numel"))
    if feature == "zeros":
        zeros, numel = row["zeros"], row["numel"]
        if not isinstance(zeros, int) or not isinstance(numel, int):
            return Missing.NOT_RECORDED
        return zeros / numel if numel else 0.0
    return row[feature]


def _placements(tensor: Datum) -> Datum:
    return getattr(tensor, "placements", None)


def cut_feature(tensor: torch.Tensor, feature: str, cut: str) -> Datum:
    """A feature of each row (all but the first dimension together), of each column, or along a dimension."""
    if not _holds_elements(tensor) or tensor.dim() == 0:
        return Missing.NOT_RECORDED
    values = tensor.detach().to_dense().double()
    if cut == "row":
        values = values.reshape(values.shape[0], -1).T
        dim = 0
    elif cut == "column":
        if values.dim() < 2:
            return Missing.NOT_RECORDED
        values = values.transpose(0, 1).reshape(values.shape[1], -1).T
        dim = 0
    else:
        dim = int(cut)
        if not -values.dim() <= dim < values.dim():
            return Missing.NOT_RECORDED
    reduce = FEATURES[feature].along
    if reduce is None or values.shape[dim] == 0:
        return Missing.NOT_RECORDED
    return tuple(reduce(values, dim).reshape(-1).tolist())


def _holds_elements(tensor: torch.Tensor) -> bool:
    """True if the tensor has its elements in memory of its own: not on the meta device, nor inside
    a `DTensor` or another wrapper.
    """
    import torch

    own = type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    return own and not tensor.is_meta
