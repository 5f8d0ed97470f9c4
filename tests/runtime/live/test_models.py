"""Names of models that torch has changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule

from tspec.runtime.live import LiveJob, WatchSpec
from tspec.runtime.live.mechanisms.forward import ModuleCallListener
from tspec.runtime.live.models import ModelRegistry


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.fc(x)
        return found


def test_fully_shard_leaves_no_trace_in_a_models_name() -> None:
    net = Net()
    # As `fully_shard` does.
    net.__class__ = type("FSDPNet", (FSDPModule, Net), {})
    models = ModelRegistry()
    models.add_root(net)
    assert [root.title for root in models.roots] == ["Net"]


def test_inner_calls_of_modules_that_were_called_before_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    before = ModuleCallListener.before

    def noted(self: ModuleCallListener, args: tuple[nn.Module, ...], kwargs: object) -> bool:
        seen.append(type(args[0]).__name__)
        return before(self, args, kwargs)

    monkeypatch.setattr(ModuleCallListener, "before", noted)
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with LiveJob(WatchSpec(()), ()) as job:
        net(torch.ones(1, 2))
        net(torch.ones(1, 2))
        assert all(module in job.state.models.called for module in net.modules())
    assert seen == ["Sequential", "Linear", "ReLU", "Sequential"]


def test_a_model_of_which_a_loop_calls_the_parts_counts_as_called() -> None:
    """As in Lightning, where `training_step` is no forward pass."""
    model = nn.ModuleDict({"encoder": nn.Linear(2, 2), "decoder": nn.Linear(2, 2)})
    copy = nn.ModuleDict({"encoder": nn.Linear(2, 2)})
    models = ModelRegistry()
    models.add_root(model)
    models.add_root(copy)
    models.called_from_outside(model["decoder"])
    assert model in models.called
    assert copy not in models.called


def _titles(models: ModelRegistry) -> list[tuple[str, str]]:
    return [(root.title, root.prefix) for root in models.roots]


def test_an_average_that_is_loaded_first_leaves_the_name_to_the_model_that_is_trained() -> None:
    average, net, models = Net(), Net(), ModelRegistry()
    models.add_root(average)
    models.add_root(net)
    models.training_begins(list(net.parameters()))
    assert _titles(models) == [("Net", ""), ("Net#2", "Net#2.")]
    assert models.name_of_parameter(net.fc.weight) == "fc.weight"
    assert models.name_of_parameter(average.fc.weight) == "Net#2.fc.weight"


def test_models_that_are_gone_before_training_count_in_no_number() -> None:
    models = ModelRegistry()
    for _ in range(2):
        models.add_root(Net())
    net = Net()
    models.add_root(net)
    models.training_begins(list(net.parameters()))
    assert _titles(models) == [("Net", "")]


def test_names_stay_once_training_has_begun() -> None:
    first, second, models = Net(), Net(), ModelRegistry()
    models.add_root(first)
    models.training_begins(list(first.parameters()))
    models.add_root(second)
    models.training_begins(list(second.parameters()))
    assert _titles(models) == [("Net", ""), ("Net#2", "Net#2.")]


def test_a_first_root_that_is_trained_keeps_its_name() -> None:
    generator, critic, models = Net(), nn.Linear(2, 1), ModelRegistry()
    models.add_root(generator)
    models.add_root(critic)
    models.training_begins([*critic.parameters(), *generator.parameters()])
    assert _titles(models) == [("Net", ""), ("Linear", "Linear.")]


class Looking(Net):
    """Looks at what is known of its parameters while it runs."""

    def __init__(self, models: ModelRegistry) -> None:
        super().__init__()
        self.look = lambda: (models.refresh(), models.parameters_in(self), models.paths())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = self.look()
        return super().forward(x)


def test_parameters_keep_their_places_while_other_tensors_stand_there() -> None:
    models = ModelRegistry()
    net = Looking(models)
    models.add_root(net)
    models.training_begins(list(net.parameters()))
    weights = {name: p.detach() * 2 for name, p in net.named_parameters()}
    torch.func.functional_call(net, weights, (torch.ones(1, 2),))
    assert net.seen[1] == {"fc.weight", "fc.bias"}
    assert net.seen[2] == models.paths()
    assert models.name_of_parameter(net.fc.weight) == "fc.weight"
    assert models.parameters()["fc.weight"].tensor is net.fc.weight


def test_parameters_of_a_scripted_module() -> None:
    models, net = ModelRegistry(), torch.jit.script(Net())
    models.add_root(net)
    assert models.parameters_in(net) == {"fc.weight", "fc.bias"}
    assert models.paths() == [{"fc.weight": ("fc.weight", (2, 2)), "fc.bias": ("fc.bias", (2,))}]


def test_a_parameter_that_is_replaced_has_the_name_from_then_on() -> None:
    net, models = Net(), ModelRegistry()
    models.add_root(net)
    models.training_begins(list(net.parameters()))
    before = net.fc.weight
    net.fc.weight = nn.Parameter(torch.ones(2, 2))
    models.refresh()
    assert models.name_of_parameter(before) is None
    assert models.name_of_parameter(net.fc.weight) == "fc.weight"


@pytest.mark.parametrize("resumed", [False, True])
def test_a_resumed_job_has_the_names_of_the_first_run(resumed: bool) -> None:
    """As scripts resume: a model to look at, then the average, then the model that is trained."""
    with LiveJob(WatchSpec(()), ()) as job:
        if resumed:
            with torch.no_grad():
                Net()(torch.ones(1, 2))
        net, average = Net(), Net()
        if resumed:
            with torch.no_grad():
                average(torch.ones(1, 2))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        average(torch.ones(1, 2))
        names = job.state.models.parameters()
        assert list(names) == ["fc.weight", "fc.bias", "Net#2.fc.weight", "Net#2.fc.bias"]
        assert names["fc.weight"].tensor is net.fc.weight


def alias(net: Net) -> None:
    """Another name for a parameter."""
    net.fc.same = net.fc.weight


def exchange(net: Net) -> None:
    """Another module under the name of one."""
    net.fc = nn.Linear(2, 2)


def derive(net: Net) -> None:
    """Another class of a module, as `parametrize` and `fully_shard` give it."""
    net.fc.__class__ = type("Derived", (nn.Linear,), {})


@pytest.mark.parametrize("change", [alias, exchange, derive])
def test_the_version_differs_if_and_only_if_the_structure_does(
    change: Callable[[Net], None],
) -> None:
    net = Net()
    models = ModelRegistry()
    models.add_root(net)
    models.refresh()
    before = models.version
    models.refresh()
    assert models.version == before
    change(net)
    models.refresh()
    assert models.version > before
