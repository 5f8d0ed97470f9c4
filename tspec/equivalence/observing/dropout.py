"""Switches dropout off within a run: masks of one device and of several ranks have nothing in common.

The functions of torch that drop elements are replaced for the time of the run. They do then what they
do in evaluation, and draw no random number.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import FunctionType
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.nn import functional

FUNCTIONS: tuple[tuple[Any, str, str, str], ...] = (
    *((functional, name, "p", "training") for name in ("dropout", "dropout1d", "dropout2d")),
    *((functional, name, "p", "training") for name in ("dropout3d", "alpha_dropout")),
    (functional, "feature_alpha_dropout", "p", "training"),
    *((torch, name, "p", "train") for name in ("dropout", "dropout_", "native_dropout")),
    *((torch, name, "p", "train") for name in ("alpha_dropout", "alpha_dropout_")),
    *((torch, name, "p", "train") for name in ("feature_dropout", "feature_dropout_")),
    *((torch, name, "p", "train") for name in ("feature_alpha_dropout", "feature_alpha_dropout_")),
)
"""Owner, name, and the names of the probability and of the flag of training."""
RECURRENT = (nn.RNN, nn.LSTM, nn.GRU)
"""Modules with dropout between their layers, in kernels of their own."""
_BUILTIN = ("input", "p", "train")
"""The parameters of torch's built-in functions."""


@contextmanager
def without_dropout(dropped: Callable[[], None]) -> Iterator[None]:
    """Within the block nothing is dropped. `dropped` is called where something would have been."""

    def noted() -> None:
        if not torch.compiler.is_compiling():  # a graph has no place for it
            dropped()

    with ExitStack() as stack:
        for owner, name, probability, training in FUNCTIONS:
            function = getattr(owner, name)
            instead = _evaluating(function, probability, training, noted)
            stack.enter_context(patch.object(owner, name, instead))
        attention = _attending(functional.scaled_dot_product_attention, noted)
        stack.enter_context(patch.object(functional, "scaled_dot_product_attention", attention))
        for kind in RECURRENT:
            stack.enter_context(patch.object(kind, "forward", _passing(kind.forward, noted)))
        yield


def _evaluating(
    function: Callable[..., Any], probability: str, training: str, dropped: Callable[[], None]
) -> Callable[..., Any]:
    """A function that drops elements, as it is in evaluation."""
    names, defaults = _parameters(function)

    def instead(*arguments: Any, **options: Any) -> Any:
        given = defaults | dict(zip(names, arguments)) | options  # noqa: B905
        if given.get(training) and given.get(probability):
            dropped()
            given[training] = False
        return function(**given)

    return _like(instead, function)


def _attending(function: Callable[..., Any], dropped: Callable[[], None]) -> Callable[..., Any]:
    """Attention without dropout. Its probability is the fifth argument."""

    def instead(*arguments: Any, **options: Any) -> Any:
        if options.get("dropout_p"):
            dropped()
            options["dropout_p"] = 0.0
        elif len(arguments) > 4 and arguments[4]:
            dropped()
            arguments = (*arguments[:4], 0.0, *arguments[5:])
        return function(*arguments, **options)

    return wraps(function)(instead)


def _passing(forward: Callable[..., Any], dropped: Callable[[], None]) -> Callable[..., Any]:
    """The forward pass of a recurrent module whose layers drop nothing between them."""

    def instead(self: Any, *arguments: Any, **options: Any) -> Any:
        rate = self.dropout
        if not (rate and self.training):
            return forward(self, *arguments, **options)
        if self.num_layers > 1:
            dropped()
        self.dropout = 0.0
        try:
            return forward(self, *arguments, **options)
        finally:
            self.dropout = rate

    return _like(instead, forward)


def _parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The names of a function's parameters, and the default values of optional ones by name."""
    if not isinstance(function, FunctionType):
        return _BUILTIN, {}
    of = inspect.signature(function).parameters
    defaults = {
        name: each.default
        for name, each in of.items()
        if each.default is not inspect.Parameter.empty
    }
    return tuple(of), defaults


def _like(instead: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """`instead` in the place of a function. TorchScript compiles the function's own source, and looks
    its names up in the globals of what it is given.
    """
    assert isinstance(instead, FunctionType)
    known = getattr(function, "__globals__", None)
    if known is not None:
        known = {**known}
        instead = FunctionType(instead.__code__, known, instead.__name__, None, instead.__closure__)
    return wraps(function)(instead)
