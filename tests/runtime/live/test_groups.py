"""Which group of an optimizer holds a parameter is known from the optimizer's construction on, not from its first update."""

from __future__ import annotations

import torch
from torch import nn

from tspec.runtime.edges import Ref
from tspec.runtime.live.entities.optimizers import OptimizerSubjects
from tspec.runtime.live.models import ModelRegistry


def known(optimizers: OptimizerSubjects, optimizer: torch.optim.Optimizer) -> None:
    """The optimizer was built."""
    optimizers.numbered.number(optimizer)


def test_groups_are_known_before_the_first_update() -> None:
    model, optimizers = nn.Linear(2, 2), OptimizerSubjects(ModelRegistry())
    optimizer = torch.optim.SGD([model.weight], 0.1)
    known(optimizers, optimizer)
    optimizers.find_groups()
    assert optimizers.group_of(model.weight) == Ref("param_group", "optimizer.0.group.0")
    assert optimizers.group_of(model.bias) is None


def test_a_group_that_is_added_is_known_before_the_next_update() -> None:
    model, optimizers = nn.Linear(2, 2), OptimizerSubjects(ModelRegistry())
    optimizer = torch.optim.SGD([model.weight], 0.1)
    known(optimizers, optimizer)
    optimizers.find_groups()
    optimizer.add_param_group({"params": [model.bias]})
    optimizers.find_groups()
    assert optimizers.group_of(model.bias) == Ref("param_group", "optimizer.0.group.1")


def test_a_second_optimizer_does_not_take_what_the_first_lets_go() -> None:
    model, optimizers = nn.Linear(2, 2), OptimizerSubjects(ModelRegistry())
    first = torch.optim.SGD(model.parameters(), 0.1)
    known(optimizers, first)
    optimizers.find_groups()
    del first
    assert optimizers.group_of(model.weight) is None
    second = torch.optim.SGD([model.weight], 0.1)
    known(optimizers, second)
    optimizers.find_groups()
    assert optimizers.group_of(model.weight) == Ref("param_group", "optimizer.1.group.0")
    assert optimizers.group_of(model.bias) is None


def test_finding_groups_gives_no_names() -> None:
    models = ModelRegistry()
    model, optimizers = nn.Linear(2, 2), OptimizerSubjects(models)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    known(optimizers, optimizer)
    optimizers.find_groups()
    assert models.name_of_parameter(model.weight) is None


def test_a_second_optimizer_that_makes_no_updates_takes_nothing() -> None:
    model, optimizers = nn.Linear(2, 2), OptimizerSubjects(ModelRegistry())
    first = torch.optim.SGD(model.parameters(), 0.1)
    known(optimizers, first)
    optimizers.find_groups()
    second = torch.optim.SGD(model.parameters(), 0.1)
    known(optimizers, second)
    optimizers.find_groups()
    assert optimizers.group_of(model.weight) == Ref("param_group", "optimizer.0.group.0")
    optimizers.update_begins(second)
    assert optimizers.group_of(model.weight) == Ref("param_group", "optimizer.1.group.0")


def test_updates_are_counted_from_their_begin() -> None:
    model, optimizers = nn.Linear(2, 2), OptimizerSubjects(ModelRegistry())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    known(optimizers, optimizer)
    optimizers.find_groups()
    assert optimizers.field("updates", "optimizer.0", optimizer) == 0
    assert not optimizers.updates(model.weight)
    optimizers.update_begins(optimizer)
    optimizers.update_begins(optimizer)
    assert optimizers.field("updates", "optimizer.0", optimizer) == 2
    assert optimizers.updates(model.weight)
