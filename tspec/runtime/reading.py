"""Features of tensors from a source, and those that only a live job can give: per row, cast, of a change."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tspec.builtin.features import FEATURES
from tspec.runtime.edges import Missing, StateSource

if TYPE_CHECKING:
    import torch

Features = Mapping[str, Any]
CAST = ("bfloat16", "float16", "float32")
"""Dtypes for which `cast` is evaluated."""


def read_features(
    source: StateSource, tensors: Sequence[Any], names: Sequence[str]
) -> Sequence[Features]:
    """The features of many tensors, those of the source in one call.

    `norm/row`, `std/0`, `digest@cast`, `zeros@change` are made here of live tensors; of recorded ones
    they are not known.
    """
    plain = tuple(name for name in names if "/" not in name and "@" not in name)
    rows = source.features(tensors, plain) if plain else [{} for _ in tensors]
    special = [name for name in names if "/" in name or "@" in name]
    if not special:
        return rows
    return [
        {**row, **_special(source, tensor, special)}
        for row, tensor in zip(rows, tensors, strict=True)
    ]


def is_live(tensor: Any) -> bool:
    """Elements of the tensor can be read: it belongs to a running job, and is not wrapped by `vmap` or `grad`."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(tensor, torch.Tensor):
        return False
    return tensor.layout != torch.strided or bool(torch._C._has_storage(tensor))


def _special(source: StateSource, tensor: Any, names: Sequence[str]) -> dict[str, Any]:
    if not is_live(tensor):
        missing = tensor if isinstance(tensor, Missing) else Missing.NOT_RECORDED
        return dict.fromkeys(names, missing)
    found: dict[str, Any] = {}
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


def _cast(source: StateSource, tensor: torch.Tensor, feature: str) -> dict[str, Any]:
    import torch

    found: dict[str, Any] = {}
    for dtype in CAST:
        [row] = source.features([tensor.detach().to(getattr(torch, dtype))], (feature, "numel"))
        found.update({f"{name}@{dtype}": value for name, value in row.items()})
    return found


def of_change(source: StateSource, before: Any, after: Any, feature: str) -> Any:
    """A feature of what a window did to a live tensor: its end less its start."""
    if not is_live(before) or not is_live(after) or before.shape != after.shape:
        return Missing.NOT_RECORDED
    difference = after.double() - before.double()
    [row] = source.features([difference], (feature, "numel"))
    if feature == "zeros":
        return row["zeros"] / row["numel"] if row["numel"] else 0.0
    return row[feature]


def cut_feature(tensor: torch.Tensor, feature: str, cut: str) -> Any:
    """A feature of each row (all but the first dimension together), of each column, or along a dimension."""
    values = tensor.detach().double()
    if values.dim() == 0:
        return Missing.NOT_RECORDED
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
