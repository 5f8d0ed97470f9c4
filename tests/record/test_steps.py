"""Steps are found in real loops of many styles, without help from the loop."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tspec
from tspec.record.destination import Destination
from tspec.record.specs import vocabulary
from tspec.record.start import recording
from tspec.record.watch import watch_spec
from tspec.runtime.live import WatchSpec
from tspec.runtime.sources import Sources
from tspec.trace.model import Begin, Boundary, Finish, Ref, Sample, Stream
from tspec.trace.read import read_trace


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a loop's recording says."""

    stream: Stream

    def opened(self, span: str) -> list[int]:
        """Indices of the spans in the order in which they opened."""
        records = self.stream.records
        return [r.index for r in records if isinstance(r, Boundary) and r.span == span]

    def calls(self, event: str) -> list[Begin]:
        """The calls of an event."""
        return [r for r in self.stream.records if isinstance(r, Begin) and r.event == event]

    def outermost(self, event: str) -> list[Begin]:
        """The calls of an event that lie in no call of it."""
        calls = {call.call: call for call in self.calls(event)}
        return [call for call in calls.values() if call.parent not in calls]

    def steps(self, event: str) -> list[int]:
        """The step of each call of an event."""
        return [call.context.step for call in self.outermost(event)]


Record = Callable[[Callable[[], None]], Recorded]


@pytest.fixture(scope="module")
def spec() -> WatchSpec:
    """What `tspec.record(DIR)` watches, read once."""
    return watch_spec(vocabulary([]))


@pytest.fixture
def record(tmp_path: Path, spec: WatchSpec) -> Iterator[Record]:
    """Records a loop in this process."""

    def run(loop: Callable[[], None]) -> Recorded:
        gc.collect()  # optimizers of other tests would be expected to update
        torch.manual_seed(0)
        with recording(Destination(tmp_path / "trace"), spec, Sources(tmp_path)):
            loop()
        [stream] = read_trace(tmp_path / "trace").streams
        assert isinstance(stream.records[-1], Finish)
        return Recorded(stream)

    yield run
    gc.collect()


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))


def loader(size: int = 12, batch: int = 4) -> DataLoader[tuple[torch.Tensor, ...]]:
    return DataLoader(TensorDataset(torch.randn(size, 4), torch.randint(0, 2, (size,))), batch)


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(model(x), y)


def test_a_plain_loop_with_evaluation_between(record: Record) -> None:
    def loop() -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        training, held_out = loader(), loader(8)
        for _ in range(2):
            model.train()
            for x, y in training:
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for x, y in held_out:
                    loss_of(model, x, y)

    found = record(loop)
    assert found.opened("step") == [1, 2, 3, 4, 5, 6]
    assert found.opened("epoch") == [1, 2]
    for event in ("optimizer.zero_grad", "backward", "optimizer.step"):
        assert found.steps(event) == [1, 2, 3, 4, 5, 6], event
    places = [(c.context.step, c.context.phase) for c in found.outermost("forward")]
    after = [(3, "eval")] * 2
    assert places[:5] == [(1, "train"), (2, "train"), (3, "train"), *after]
    assert places[5:] == [(4, "train"), (5, "train"), (6, "train"), (6, "eval"), (6, "eval")]
    assert [c.context.epoch for c in found.calls("optimizer.step")] == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("fed", [True, False])
@pytest.mark.parametrize("clears", ["before", "after", "by the module", "by hand"])
def test_wherever_gradients_are_cleared(record: Record, fed: bool, clears: str) -> None:
    def loop() -> None:
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        drawn = [(torch.randn(4, 4), torch.randint(0, 2, (4,))) for _ in range(3)]
        for x, y in loader() if fed else drawn:
            if clears == "before":
                optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
            if clears == "after":
                optimizer.zero_grad(set_to_none=False)
            elif clears == "by the module":
                model.zero_grad()
            elif clears == "by hand":
                for parameter in model.parameters():
                    parameter.grad = None

    found = record(loop)
    assert found.opened("step") == [1, 2, 3]
    assert found.steps("forward") == found.steps("backward") == [1, 2, 3]
    assert found.steps("optimizer.step") == [1, 2, 3]
    if clears != "by hand":
        assert found.steps("optimizer.zero_grad") == [1, 2, 3]


@pytest.mark.parametrize("fed", [True, False])
def test_gradient_accumulation(record: Record, fed: bool) -> None:
    def loop() -> None:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        drawn = [(torch.randn(4, 4), torch.randint(0, 2, (4,))) for _ in range(6)]
        for number, (x, y) in enumerate(loader(24) if fed else drawn):
            (loss_of(model, x, y) / 3).backward()
            if number % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()

    found = record(loop)
    assert found.opened("step") == [1, 2]
    assert found.steps("optimizer.step") == [1, 2]
    places = [(c.context.step, c.context.microbatch) for c in found.calls("backward")]
    assert places == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


class Accumulates(torch.optim.Optimizer):
    """Shows another optimizer's groups, and passes on every second call, as Accelerate's wrapper does."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.passed = False

    @property  # type: ignore[override]
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        return self.optimizer.param_groups

    def step(self, closure: Any = None) -> None:
        self.passed = not self.passed
        if not self.passed:
            self.optimizer.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        if not self.passed:
            self.optimizer.zero_grad(set_to_none)


def test_a_wrapper_that_leaves_updates_out(record: Record) -> None:
    def loop() -> None:
        model = network()
        optimizer = Accumulates(torch.optim.SGD(model.parameters(), lr=0.1))
        schedule = torch.optim.lr_scheduler.ConstantLR(optimizer)
        for x, y in loader(24):
            loss_of(model, x, y).backward()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()

    found = record(loop)
    assert found.opened("step") == [1, 2, 3]
    assert found.steps("backward") == [1, 1, 2, 2, 3, 3]
    for event in ("optimizer.step", "optimizer.zero_grad"):
        assert found.steps(event) == [1, 2, 3], event
    schedules = [r for r in found.stream.records if isinstance(r, Sample) and r.kind == "scheduler"]
    assert schedules[0].fields["optimizer"] == Ref("optimizer", "optimizer.0")


class Shows:
    """Shows another optimizer's groups, calls its `step`, and inherits its class, as Lightning's wrapper does."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self.__class__ = type("Shown", (Shows, type(optimizer)), {})

    def step(self, closure: Any = None) -> None:
        self._optimizer.step()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)


def test_a_wrapper_that_clears_what_it_shows(record: Record) -> None:
    """Its `zero_grad` is that of the class, called on the wrapper, and the optimizer's own is never called."""

    def loop() -> None:
        one, other = network(), network()
        pairs = [(each, Shows(torch.optim.SGD(each.parameters(), lr=0.1))) for each in (one, other)]
        for x, y in loader():
            for model, optimizer in pairs:
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                optimizer.step()

    found = record(loop)
    assert found.opened("step") == [1, 2, 3]
    assert found.steps("optimizer.zero_grad") == [1, 1, 2, 2, 3, 3]
    samples = [r for r in found.stream.records if isinstance(r, Sample)]
    assert {r.subject for r in samples if r.kind == "optimizer"} == {"optimizer.0", "optimizer.1"}


@pytest.mark.parametrize("fed", [True, False])
def test_two_optimizers(record: Record, fed: bool) -> None:
    def loop() -> None:
        one, other = network(), network()
        first = torch.optim.SGD(one.parameters(), lr=0.1)
        second = torch.optim.Adam(other.parameters(), lr=0.1)
        drawn = [(torch.randn(4, 4), torch.randint(0, 2, (4,))) for _ in range(3)]
        for x, y in loader() if fed else drawn:
            for model, optimizer in ((one, first), (other, second)):
                optimizer.zero_grad()
                loss_of(model, x, y).backward()
                optimizer.step()

    found = record(loop)
    assert found.opened("step") == [1, 2, 3]
    for event in ("optimizer.zero_grad", "forward", "backward", "optimizer.step"):
        assert found.steps(event) == [1, 1, 2, 2, 3, 3], event


@pytest.mark.parametrize("evaluates", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_a_loop_without_a_loader_after_one_with_a_loader(
    record: Record, first: bool, evaluates: bool
) -> None:
    """A head is trained on features of a model; each of its clears belongs to the step that it begins, or ends."""

    def loop() -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader():
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
        with torch.no_grad():
            features = model(torch.randn(4, 4))
        head = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        for _ in range(3):
            if first:
                optimizer.zero_grad()
            loss_of(head, features, torch.randint(0, 2, (4,))).backward()
            optimizer.step()
            if not first:
                optimizer.zero_grad()
            if evaluates:
                with torch.no_grad():
                    head(features)

    found = record(loop)
    assert found.opened("step") == [1, 2, 3, 4, 5, 6]
    for event in ("optimizer.zero_grad", "backward", "optimizer.step"):
        assert found.steps(event) == [1, 2, 3, 4, 5, 6], event


def test_a_closure_is_one_step(record: Record) -> None:
    def loop() -> None:
        model = network()
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
        x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)

    found = record(loop)
    assert found.opened("step") == [1, 2]
    assert found.steps("optimizer.step") == [1, 2]
    assert set(found.steps("backward")) == {1, 2}
    assert len(found.steps("backward")) > 2


class Signs:
    """Takes the signs of gradients. No `torch.optim.Optimizer`."""

    def __init__(self, parameters: Iterator[nn.Parameter], lr: float) -> None:
        self.held = list(parameters)
        self.lr = lr

    @torch.no_grad()
    def step(self) -> None:
        for parameter in self.held:
            assert parameter.grad is not None
            parameter -= self.lr * parameter.grad.sign()

    def zero_grad(self) -> None:
        for parameter in self.held:
            parameter.grad = None


@pytest.mark.parametrize("fed", [True, False])
def test_an_optimizer_of_the_users_own_class(record: Record, fed: bool) -> None:
    def loop() -> None:
        model = network()
        optimizer = Signs(model.parameters(), lr=0.01)
        drawn = [(torch.randn(4, 4), torch.randint(0, 2, (4,))) for _ in range(3)]
        for x, y in loader() if fed else drawn:
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()

    found = record(loop)
    assert found.opened("step") == [1, 2, 3]
    for event in ("optimizer.zero_grad", "backward", "optimizer.step"):
        assert found.steps(event) == [1, 2, 3], event


class Sharing:
    """Leaves updates to optimizers of torch, and clears the gradients itself."""

    def __init__(self, model: nn.Module, several: bool) -> None:
        self.held = list(model.parameters())
        inner = [torch.optim.SGD([each], lr=0.1) for each in self.held]
        self.inner = inner if several else torch.optim.SGD(self.held, lr=0.1)

    def step(self) -> None:
        for each in self.inner if isinstance(self.inner, list) else [self.inner]:
            each.step()

    def zero_grad(self) -> None:
        for parameter in self.held:
            parameter.grad = None


@pytest.mark.parametrize("several", [True, False])
def test_an_own_class_that_leaves_updates_to_optimizers_of_torch(
    record: Record, several: bool
) -> None:
    def loop() -> None:
        model = network()
        optimizer = Sharing(model, several)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model, torch.randn(4, 4), torch.randint(0, 2, (4,))).backward()
            optimizer.step()

    found = record(loop)
    assert found.opened("step") == [1, 2, 3]
    updates = len(list(network().parameters())) if several else 1
    assert found.steps("optimizer.step") == sorted([1, 2, 3] * updates)


def test_an_own_optimizer_that_is_defined_while_recording(record: Record) -> None:
    def loop() -> None:
        class Descent:
            def __init__(self, model: nn.Module) -> None:
                self.weights = dict(model.named_parameters())

            def step(self) -> None:
                for parameter in self.weights.values():
                    parameter.data.add_(parameter.grad, alpha=-0.1)
                    parameter.grad = None

        model = network()
        optimizer = Descent(model)
        for _ in range(3):
            loss_of(model, torch.randn(4, 4), torch.randint(0, 2, (4,))).backward()
            optimizer.step()

    found = record(loop)
    assert found.opened("step") == [1, 2, 3]
    assert found.steps("optimizer.step") == [1, 2, 3]


def test_updates_by_hand(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    def loop() -> None:
        model = network()
        for x, y in loader():
            loss_of(model, x, y).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None

    found = record(loop)
    assert found.opened("step") == [1, 2, 3]
    assert found.steps("backward") == [1, 2, 3]
    assert "no optimizer was seen" in capsys.readouterr().err


@pytest.mark.parametrize("accumulate", [1, 3])
def test_updates_by_hand_beside_an_optimizer_that_is_never_stepped(
    record: Record, accumulate: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def loop() -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for number, (x, y) in enumerate(loader(24)):
            loss_of(model, x, y).backward()
            if (number + 1) % accumulate == 0:
                for parameter in model.parameters():
                    assert parameter.grad is not None
                    parameter.data.add_(parameter.grad, alpha=-0.1)
                optimizer.zero_grad()

    found = record(loop)
    assert found.steps("backward") == [1 + number // accumulate for number in range(6)]
    said = "an optimizer was built and made no update: what rules say of updates is not tested"
    assert said in capsys.readouterr().err


def test_that_all_passes_are_one_step_is_said(
    record: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    def loop() -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model, torch.randn(4, 4), torch.randint(0, 2, (4,))).backward()

    assert record(loop).opened("step") == [1]
    assert "made no update: all passes count as one step" in capsys.readouterr().err


def test_weights_that_are_moved_and_put_back_before_the_first_update_are_one_step(
    record: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    def loop() -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader():
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(0.01)
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(0.01)
            optimizer.step()

    found = record(loop)
    assert found.steps("backward") == [1, 1, 2, 2, 3, 3]
    assert "no update" not in capsys.readouterr().err


@pytest.mark.parametrize("trains", [True, False])
def test_an_optimizer_is_missed_only_where_something_is_trained_without(
    record: Record, trains: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    def loop() -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if trains else None
        for x, y in loader():
            loss = loss_of(model, x, y)
            if optimizer is not None:
                loss.backward()
                optimizer.step()

    record(loop)
    assert "no optimizer" not in capsys.readouterr().err


def test_the_script_says_its_steps(record: Record) -> None:
    def loop() -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for number in range(10, 40, 10):
            tspec.step(number)
            for _ in range(2):
                optimizer.zero_grad()
                loss_of(model, torch.randn(4, 4), torch.randint(0, 2, (4,))).backward()
                optimizer.step()

    found = record(loop)
    assert found.opened("step") == [10, 20, 30]
    assert found.steps("optimizer.step") == [10, 10, 20, 20, 30, 30]


def test_a_scaler_that_leaves_an_update_out(record: Record) -> None:
    """A step ends in an update; where gradients are not finite, `GradScaler.step` makes none."""

    def loop() -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        for number, (x, y) in enumerate(loader()):
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            scaler.scale(loss * (float("inf") if number == 1 else 1.0)).backward()
            scaler.step(optimizer)
            scaler.update()

    found = record(loop)
    assert found.opened("step") == [1, 2]
    assert found.steps("optimizer.step") == [1, 2]
    assert found.steps("backward") == [1, 2, 2]
