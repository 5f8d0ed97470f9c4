"""The part of a loss that has no graph, where all its other terms are results of loss functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tspec.runtime.live.losses.graph import operation_of
from tspec.runtime.live.losses.marks import Mark
from tspec.runtime.live.losses.sums import weighted_terms

_VALUE: Mark[torch.Tensor] = Mark("value")
"""The value of the result that a node computed."""
TERMS = 64
"""The number of results of loss functions whose values are kept. A loss may have several."""
LEAST = 3
"""The number of losses of one form that show whether their constant part varies."""
_ROUND_OFF = 1e-5
"""The largest part of a loss that rounding of its sum causes."""
_EXACT = frozenset({torch.float32, torch.float64})


@dataclass(slots=True)
class _Form:
    """The constant parts of losses that were added up of the same terms."""

    count: int = 0
    lowest: float = 0.0
    highest: float = 0.0
    largest: float = 0.0
    """The largest loss."""

    def add(self, constant: float, loss: float) -> None:
        """One more loss."""
        self.lowest = min(self.lowest, constant) if self.count else constant
        self.highest = max(self.highest, constant) if self.count else constant
        self.largest = max(self.largest, abs(loss))
        self.count += 1

    @property
    def varies(self) -> bool:
        """True if the constant parts differ by more than rounding."""
        return self.highest - self.lowest > _ROUND_OFF * self.largest


class ConstantTerms:
    """Compares the constant parts of the losses of a job.

    A loss and its terms with a graph have known values, and their difference is the constant.
    """

    def __init__(self) -> None:
        self._forms: dict[tuple[str, ...], _Form] = {}

    def is_known_term(self, result: object) -> bool:
        """True if the result of a loss function is a single number with a graph. Its value is kept as long as the
        graph.
        """
        if not isinstance(result, torch.Tensor) or result.grad_fn is None or result.dim():
            return False
        _VALUE.put(result, result.detach())
        return True

    def constant_varies(self, losses: Any) -> bool | None:
        """True if a loss has a term without a graph, and this was another number in earlier losses of the same terms.

        None if it has no such term, or another one of unknown value, and of the first losses.
        """
        tensors = losses if isinstance(losses, (list, tuple)) else (losses,)
        loss = tensors[0] if len(tensors) == 1 else None
        terms = None if loss is None or loss.dim() else _terms(loss.grad_fn)
        if loss is None or not terms:
            return None
        values = torch.stack([loss.detach(), *(value for _, value, _ in terms)])
        if values.dtype not in _EXACT or not bool(values.isfinite().all()):
            return None
        whole, *parts = values.double().tolist()
        form = self._forms.setdefault(tuple(sorted(name for name, _, _ in terms)), _Form())
        form.add(whole - sum(f * v for (_, _, f), v in zip(terms, parts, strict=True)), whole)
        return form.varies if form.count >= LEAST else None


def _terms(last: Any) -> list[tuple[str, torch.Tensor, float]] | None:
    """The terms of a sum: operation, value and factor of each. None if no term lacks a graph, or the value of another
    one is unknown.
    """
    terms = list(weighted_terms(last, _VALUE.on))
    known = [(node, _VALUE.of(node), factor) for node, factor in terms if node is not None]
    found = [
        (operation_of(node), value, factor) for node, value, factor in known if value is not None
    ]
    return found if len(found) == len(known) < len(terms) else None
