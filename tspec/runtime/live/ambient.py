"""Values that belong to no subject: the latest loss, the autocast dtype, annotations of the script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from tspec.runtime.edges import Missing
from tspec.runtime.live.cuda.transfer import in_transfer
from tspec.values import Datum


class AmbientValues:
    """Asks torch at the moment of the question; remembers the latest loss and annotations."""

    def __init__(self) -> None:
        self.annotated: dict[str, Any] = {}
        self._loss: torch.Tensor | None = None
        self._value: Any = Missing.NO_HISTORY
        cuda = torch.cuda.is_available()  # asks the driver each time
        self._readers: Mapping[str, Callable[[], Any]] = {
            "loss": self._number,
            "autocast.enabled": lambda: autocast_device() is not None,
            "autocast.dtype": _autocast_dtype,
            "cuda.available": lambda: cuda,
        }

    def loss_is(self, loss: torch.Tensor) -> None:
        """`backward` is about to be called on this tensor. Its number is read when it is asked for."""
        self._loss = loss.detach()

    def value(self, name: str) -> Datum:
        """The value now; not recorded if the name means nothing here."""
        if name in self.annotated:
            return self.annotated[name]
        read = self._readers.get(name)
        return Missing.NOT_RECORDED if read is None else read()

    def _number(self) -> Datum:
        if self._loss is not None:
            loss, self._loss = self._loss, None
            held = loss.numel() and not loss.is_meta
            self._value = in_transfer(loss.sum(), _number_of) if held else Missing.NOT_RECORDED
        return self._value


def _number_of(loss: torch.Tensor) -> float:
    return float(loss)


def autocast_device() -> str | None:
    """The device type for which autocast is on, or None."""
    if torch.is_autocast_enabled("cuda"):
        return "cuda"
    return "cpu" if torch.is_autocast_enabled("cpu") else None


def _autocast_dtype() -> str | Missing:
    device = autocast_device()
    if device is None:
        return Missing.ABSENT
    return str(torch.get_autocast_dtype(device)).removeprefix("torch.")
