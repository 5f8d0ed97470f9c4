"""`overflowed` is said during an update whose scaled gradients are not finite, and not after it."""

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tspec.runtime.live.cuda.transfer import HostCopy
from tspec.runtime.live.watched import Listener
from tspec.runtime.transfers import NumberInTransfer, arrived
from tspec.targets.megatron import configuration
from tspec.targets.megatron.configuration import Overflow


def overflow(*gradients: float | None) -> tuple[Overflow, dict[str, Any]]:
    """The listener in a job whose parameters have these main gradients, and what is annotated."""
    given = (None if each is None else torch.tensor([1.0, each]) for each in gradients)
    parameters = {
        str(n): SimpleNamespace(tensor=SimpleNamespace(main_grad=g)) for n, g in enumerate(given)
    }
    annotated: dict[str, Any] = {}
    job: Any = SimpleNamespace(
        known=SimpleNamespace(annotated=annotated),
        state=SimpleNamespace(models=SimpleNamespace(parameters=lambda: parameters)),
    )
    return Overflow(job), annotated


def scale() -> torch.Tensor:
    return torch.tensor([1024.0])


SCALING = SimpleNamespace(grad_scaler=object(), get_loss_scale=scale)
CHAINED = SimpleNamespace(
    chained_optimizers=[SimpleNamespace(grad_scaler=None), SCALING], get_loss_scale=scale
)
PLAIN = SimpleNamespace(grad_scaler=None)


@pytest.mark.parametrize(
    ("optimizer", "gradients", "expected"),
    [
        (SCALING, (1.0, torch.inf), True),
        (CHAINED, (torch.nan, None), True),
        (SCALING, (1.0, 2.0), False),
        (SCALING, (None,), False),
        (PLAIN, (torch.inf,), False),
    ],
)
def test_it_is_said_during_the_update_alone(
    optimizer: Any, gradients: tuple[float | None, ...], expected: bool
) -> None:
    listener, annotated = overflow(*gradients)
    token = listener.before((optimizer,), {})
    assert annotated["overflowed"] is expected
    assert annotated["loss_scale"] == (1.0 if optimizer is PLAIN else 1024.0)
    listener.ended(token)
    assert annotated["overflowed"] is False


class Waits(TorchDispatchMode):
    """Keeps the operations that wait for a device, since they take a number from it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if operator in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default):
            self.seen.append(str(operator))
        return operator(*args, **(kwargs or {}))


def test_an_update_begins_without_waiting_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_a_gpu(tensor: torch.Tensor, convert: Callable[[torch.Tensor], Any]) -> NumberInTransfer:
        return NumberInTransfer(HostCopy(tensor), lambda: convert(tensor))

    monkeypatch.setattr(configuration, "in_transfer", on_a_gpu)
    listener, annotated = overflow(1.0, torch.inf)
    with Waits() as waits:
        listener.before((SCALING,), {})
        assert waits.seen == []
        assert arrived(annotated["overflowed"]) is True
        assert arrived(annotated["loss_scale"]) == 1024.0
    assert len(waits.seen) == 2  # where a rule asks


def test_an_update_within_an_update_ends_nothing() -> None:
    listener, annotated = overflow(torch.inf)
    outer = listener.before((CHAINED,), {})
    listener.ended(listener.before((PLAIN,), {}))
    assert annotated["overflowed"] is True
    listener.ended(outer)
    assert annotated["overflowed"] is False


def test_listeners_have_no_method_that_nobody_calls() -> None:
    for module in ("tspec.runtime.live.mechanisms.messages", "tspec.targets.megatron.steps"):
        import_module(module)
    waiting = list(Listener.__subclasses__())
    assert Overflow in waiting
    for cls in waiting:
        waiting += cls.__subclasses__()
        assert not hasattr(cls, "after"), cls
