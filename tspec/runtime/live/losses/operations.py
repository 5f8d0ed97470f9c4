"""The operations that computed a loss, from the autograd graph.

Each operation is paired with the ones that made its inputs: `softmax(-1) <- masked_fill`. The set
of pairs is the same for a deeper or a wider model, and for longer sequences.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tspec.runtime.live.convert import tensors_in
from tspec.runtime.live.losses.graph import signed, snake_case
from tspec.runtime.live.sampling import Sampling

PASSES = Sampling(first=16, every=10)
"""Backward passes whose graphs are read, later ones too: another part of the training may have begun."""
MOST = 20_000
"""A graph of more nodes is not read: an optimisation that is unrolled."""
_UNSEEN = frozenset(
    {"backward_hook_function", "view", "unsafe_view", "reshape_alias", "expand", "clone", "alias"}
)
"""Nodes that only observe a module, and nodes that only change the memory layout. The latter depend
on sizes and strides.
"""
_SAID = {"AccumulateGrad": "parameter", "EuclideanDist": "cdist"}
"""Names that are said otherwise. `torch.cdist` computes more than 25 rows by another formula."""
_SETTINGS = {
    setting: f"_saved_{setting}"
    for setting in (
        "dim", "dim0", "dim1", "dims", "reduction", "training", "train", "is_causal",
    )
}  # fmt: skip
"""Arguments that define an operation, and their names in graph nodes.

Sizes and rates are left out, since they belong to a run.
"""
_REDUCTIONS = ("none", "mean", "sum")


class LossOperations:
    """Reads the graphs of losses: of the first passes all, then some."""

    def __init__(self) -> None:
        self._passes = 0

    def operations(self, losses: Any) -> set[str]:
        """Each operation paired with each one that computed an input of it; empty for a pass that
        is not sampled.

        `loss` stands for the consumer of the last operation, `parameter` for a tensor that gets its
        gradient, and `constant` for an input without a gradient.
        """
        self._passes += 1
        if not PASSES.takes(self._passes):
            return set()
        waiting = [each.grad_fn for each in tensors_in(losses) if each.grad_fn is not None]
        found = {f"loss <- {_said(_seen(node))}" for node in waiting}
        known = set(waiting)
        while waiting:
            node = waiting.pop()
            said = None if _name(node.name()) in _UNSEEN else _said(node)
            for following, _ in node.next_functions:
                if said is not None:
                    found.add(f"{said} <- {_said(_seen(following))}")
                if following is not None and following not in known:
                    known.add(following)
                    waiting.append(following)
            if len(known) > MOST:
                return set()
        return found


def _seen(node: Any) -> Any:
    """The node itself, or the one before it that computed values."""
    while node is not None and _name(node.name()) in _UNSEEN:
        node = node.next_functions[0][0] if node.next_functions else None
    return node


def _said(node: Any) -> str:
    """The name of a node's operation, with the arguments that determine it: `sum(1)`."""
    if node is None:
        return "constant"
    name = _name(node.name())
    said = [
        _setting(setting, getattr(node, saved))
        for setting, saved in _SETTINGS.items()
        if hasattr(node, saved)
    ]
    return f"{name}({', '.join(said)})" if said else name


def _setting(name: str, value: Any) -> str:
    if name == "reduction":
        return _REDUCTIONS[value]
    if isinstance(value, bool):
        return name if value else f"not {name}"
    if isinstance(value, int):
        return str(signed(value))
    if isinstance(value, tuple):
        return " ".join(str(signed(each)) for each in value)
    return str(value)


@cache
def _name(name: str) -> str:
    """`masked_fill` of `MaskedFillBackward0`."""
    plain = name.rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")
    return _SAID.get(plain) or snake_case(plain)
