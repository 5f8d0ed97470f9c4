"""Optimizers, torch's and the user's own, their groups of parameters, and schedulers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any
from weakref import WeakKeyDictionary

import torch

from tspec.runtime.edges import Ref
from tspec.runtime.live.convert import one_number, plain_values, scalar
from tspec.runtime.live.entities.kind import ABSENT, UNKNOWN, asked
from tspec.runtime.live.entities.lengths import largest_number, total_steps
from tspec.runtime.live.instrument.dotted import spellings
from tspec.runtime.live.models import ModelRegistry
from tspec.runtime.live.numbered import NumberedObjects
from tspec.runtime.live.sent import SentBytes
from tspec.values import Datum

BEGINS, TOP = 0.5, 1.001
"""The least and the largest factor of its earlier learning rate with which a schedule goes on."""
VISITED = 10_000
"""The number of items of each list or dict that are searched for tensors."""


def held_tensors(value: Any, depth: int = 3) -> Iterator[torch.Tensor]:
    """Tensors that are to be trained, in a list, dict or tuple of an optimizer's attributes."""
    if isinstance(value, torch.Tensor):
        if value.is_leaf and value.requires_grad:
            yield value
    elif depth:
        for item in islice(_items(value), VISITED):
            yield from held_tensors(item, depth - 1)


def holds_optimizers(value: Any) -> bool:
    """True of an optimizer of torch, and of a list, dict or tuple with one."""
    several = chain((value,), islice(_items(value), VISITED))
    return any(issubclass(type(each), torch.optim.Optimizer) for each in several)


def _items(value: Any) -> Iterator[Any]:
    """The elements of a list, dict or tuple, whatever methods its class has."""
    if isinstance(value, dict):
        return iter(dict.values(value))
    if isinstance(value, list):
        return list.__iter__(value)
    return tuple.__iter__(value) if isinstance(value, tuple) else iter(())


def _is_group(group: Any) -> bool:
    return isinstance(group, dict) and isinstance(group.get("params"), (list, tuple))


def params_of(group: Mapping[str, Any]) -> list[torch.Tensor]:
    """The parameters of one group."""
    return [each for each in group["params"] if isinstance(each, torch.Tensor)]


def groups_of(optimizer: Any) -> list[dict[str, Any]]:
    """The groups of parameters of an optimizer; of the user's own kind, one with its plain attributes."""
    groups = asked(optimizer, "param_groups")
    if isinstance(groups, list) and all(map(_is_group, groups)):
        return groups
    held = asked(optimizer, "__dict__")
    values = held if isinstance(held, dict) else {}
    tensors: dict[int, torch.Tensor] = {}
    for value in values.values():
        tensors.update({id(t): t for t in held_tensors(value)})
    plain = {
        key: value for key, value in values.items() if isinstance(value, (bool, int, float, str))
    }
    return [{**plain, "params": list(tensors.values())}]


def held_by(optimizer: Any) -> list[torch.Tensor]:
    """The tensors that an optimizer holds, in the order of its groups."""
    return [each for group in groups_of(optimizer) for each in params_of(group)]


def holds_groups(optimizer: Any) -> bool:
    """True if the optimizer has parameter groups of its own.

    A wrapper, such as Accelerate's or Lightning's, shows the groups of another optimizer. It
    delegates updates and clearing to that optimizer, or skips them while gradients accumulate.
    """
    held = asked(optimizer, "__dict__")
    return isinstance(held, dict) and "param_groups" in held


def clears_groups(optimizer: Any) -> bool:
    """True if its `zero_grad` clears gradients itself.

    Either the optimizer has groups of its own, or it is a wrapper that inherits the method, as
    Lightning's does, and so clears the groups that it shows.
    """
    inherited = torch.optim.Optimizer.zero_grad
    return holds_groups(optimizer) or getattr(type(optimizer), "zero_grad", None) is inherited


class OptimizerSubjects:
    """Kind `optimizer`: named `optimizer.0` and so on, in the order of construction."""

    def __init__(self, models: ModelRegistry) -> None:
        self._models = models
        self.numbered = NumberedObjects("optimizer")
        self._groups: dict[int, tuple[Ref, Callable[[], Any]]] = {}
        """Id of a parameter -> its group, and a function that returns the optimizer as long as it
        exists.
        """
        self._references: dict[str, Ref] = {}
        """The parameters by name. Each is made once: the field is read at several instants of a step."""
        self._sizes: dict[str, list[int]] = {}
        """Name of an optimizer -> the numbers of parameters of its groups when they were last read.
        """
        self._updates: Counter[int] = Counter()
        """Number of an optimizer -> the number of its updates, one that is running included."""
        self.sent = SentBytes()
        """What this rank sends others between updates."""

    def things(self) -> Mapping[str, Any]:
        return self.numbered.alive()

    def name_of(self, thing: Any) -> str | None:
        """The name of an optimizer; for a wrapper, the name of the optimizer whose groups it shows."""
        if self.numbered.knows(thing):
            return self.numbered.name(thing)
        groups = asked(thing, "param_groups")
        alive = self.numbered.alive().items()
        return next((name for name, each in alive if groups_of(each) is groups), None)

    def field(self, name: str, subject: str, thing: Any) -> Datum:
        if name == "class":
            return spellings(type(thing))
        if name == "param_groups":
            return tuple(
                Ref("param_group", f"{subject}.group.{i}") for i in range(len(groups_of(thing)))
            )
        if name == "parameters":
            return self.references(held_by(thing))
        if name == "attributes":
            return plain_values(thing)
        if name == "alone":
            return self.sent.alone
        if name == "updates":
            return self._updates[self.numbered.number(thing)]
        return UNKNOWN

    def numbers(self) -> frozenset[int]:
        """Numbers of all optimizers that exist."""
        return frozenset(int(name.rsplit(".", 1)[1]) for name in self.numbered.alive())

    def holders_of(self, tensors: list[torch.Tensor]) -> frozenset[int]:
        """Numbers of the optimizers that hold one of the tensors."""
        ids = {id(tensor) for tensor in tensors}
        return frozenset(
            self.numbered.number(optimizer)
            for optimizer in self.numbered.alive().values()
            if any(id(p) in ids for p in held_by(optimizer))
        )

    def revive(self, optimizer: Any) -> None:
        """An optimizer that was about to be freed lives on."""
        self.numbered.revive(optimizer)
        self.name_parameters(optimizer)

    def resumed_updates(self, optimizer: Any) -> int:
        """How many updates the state of a known optimizer counts that were not made in this run."""
        return max(steps_made(optimizer) - self._updates[self.numbered.number(optimizer)], 0)

    def made(self) -> int:
        """The number of updates of all optimizers that exist."""
        return self._updates.total()

    def update_begins(self, optimizer: Any) -> None:
        """The optimizer makes an update: count it, and name its parameters."""
        self._updates[self.numbered.number(optimizer)] += 1
        self.name_parameters(optimizer)

    def forget(self, gone: Iterable[int]) -> None:
        """Optimizers of these numbers are gone."""
        for number in gone:
            self._updates.pop(number, None)
            self._sizes.pop(f"{self.numbered.kind}.{number}", None)

    def name_parameters(self, optimizer: Any) -> None:
        """Give names to parameters that no model holds, by their place in the optimizer."""
        subject, groups = self.numbered.name(optimizer), groups_of(optimizer)
        for place, parameter in enumerate(p for group in groups for p in params_of(group)):
            self._models.name_free(parameter, f"{subject}.param.{place}")
        self._groups.update(self._groups_of(optimizer, subject, groups))

    def find_groups(self) -> None:
        """Find the groups of optimizers that were built, or got another group, since their last update.

        A parameter that another optimizer holds already stays in the group of that one.
        """
        for subject, optimizer in self.things().items():
            if not holds_groups(optimizer):
                continue
            groups = groups_of(optimizer)
            if _sizes(groups) != self._sizes.get(subject):
                found = self._groups_of(optimizer, subject, groups)
                held = (each for each in found if self._group(each) is None)
                self._groups.update({each: found[each] for each in held})

    def _groups_of(
        self, optimizer: Any, subject: str, groups: list[dict[str, Any]]
    ) -> dict[int, tuple[Ref, Callable[[], Any]]]:
        """Id of a parameter -> its group in one optimizer."""
        held = self.numbered.held(optimizer)
        self._sizes[subject] = _sizes(groups)
        return {
            id(parameter): (Ref("param_group", f"{subject}.group.{index}"), held)
            for index, group in enumerate(groups)
            for parameter in params_of(group)
        }

    def _group(self, parameter: int) -> tuple[Ref, Any] | None:
        """The group that holds the parameter of an id, and its optimizer, if that is still there."""
        found = self._groups.get(parameter)
        optimizer = None if found is None else found[1]()
        return None if found is None or optimizer is None else (found[0], optimizer)

    def group_of(self, tensor: torch.Tensor) -> Ref | None:
        """The group that holds a parameter, of an optimizer that is still there."""
        found = self._group(id(tensor))
        return None if found is None else found[0]

    def updates(self, tensor: torch.Tensor) -> bool:
        """True if an optimizer that has made updates holds the parameter."""
        found = self._group(id(tensor))
        return found is not None and self._updates[self.numbered.number(found[1])] > 0

    def references(self, tensors: list[torch.Tensor]) -> frozenset[Ref]:
        """The parameters that tensors are; those without a name are left out."""
        names = map(self._models.name_of_parameter, tensors)
        known = self._references
        return frozenset(
            [known.get(name) or self._reference(name) for name in names if name is not None]
        )

    def _reference(self, name: str) -> Ref:
        return self._references.setdefault(name, Ref("parameter", name))


def _sizes(groups: list[dict[str, Any]]) -> list[int]:
    return [len(group["params"]) for group in groups]


class ParamGroupSubjects:
    """Kind `param_group`: `optimizer.0.group.1`. Things are the group's dicts."""

    def __init__(self, optimizers: OptimizerSubjects) -> None:
        self._optimizers = optimizers

    def things(self) -> Mapping[str, dict[str, Any]]:
        return {
            f"{name}.group.{index}": group
            for name, optimizer in self._optimizers.things().items()
            for index, group in enumerate(groups_of(optimizer))
        }

    def name_of(self, thing: Any) -> str | None:
        return next((name for name, group in self.things().items() if group is thing), None)

    def field(self, name: str, subject: str, thing: dict[str, Any]) -> Datum:
        if name == "params":
            return self._optimizers.references(params_of(thing))
        if name == "optimizer":
            return Ref("optimizer", subject.rsplit(".group.", 1)[0])
        value = thing.get(name)
        return one_number(value) if isinstance(value, torch.Tensor) else scalar(value)


class SchedulerSubjects:
    """Kind `scheduler`: `scheduler.0`."""

    def __init__(self, optimizers: OptimizerSubjects) -> None:
        self._optimizers = optimizers
        self.numbered = NumberedObjects("scheduler")
        self._loaded: WeakKeyDictionary[Any, tuple[int, list[Any]]] = WeakKeyDictionary()
        """Optimizer -> the number of schedules and its learning rates when a state was loaded."""
        self._began: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        """Schedule -> its `last_epoch` when it was built, or when it last loaded a state."""

    def things(self) -> Mapping[str, Any]:
        return self.numbered.alive()

    def name_of(self, thing: Any) -> str | None:
        return self.numbered.name(thing) if self.numbered.knows(thing) else None

    def built(self, scheduler: Any) -> None:
        """A schedule was built."""
        self.numbered.number(scheduler)
        self.begins(scheduler)

    def begins(self, scheduler: Any) -> None:
        """A schedule has the count from which it continues in this run."""
        self._began[scheduler] = scalar(asked(scheduler, "last_epoch"))

    def loaded(self, optimizer: Any) -> None:
        """A state was loaded into an optimizer."""
        self._loaded[optimizer] = (self.numbered.count, _rates(optimizer))

    def resumed_updates(self, scheduler: Any) -> int | None:
        """How many updates the state of a schedule's optimizer counts that were not made in this run.

        None if the schedule has made a step, for optimizers that are not known, and for a schedule
        that was built on a loaded state and goes on with its learning rates, as a cool-down does.
        """
        optimizer = asked(scheduler, "optimizer")
        known = self._optimizers.numbered.knows(optimizer)
        if scalar(asked(scheduler, "last_epoch")) != 0 or not known:
            return None
        if self._goes_on(scheduler, optimizer):
            return None
        return self._optimizers.resumed_updates(optimizer)

    def _goes_on(self, scheduler: Any, optimizer: Any) -> bool:
        """True if it was built after a state was loaded, and begins with the learning rates of that state."""
        schedules, rates = self._loaded.get(optimizer, (self.numbered.count, []))
        if self.numbered.number(scheduler) < schedules:
            return False
        begins = _rates(optimizer)
        return len(begins) == len(rates) and all(
            isinstance(now, (int, float))
            and isinstance(was, (int, float))
            and BEGINS * was <= now <= TOP * was
            for now, was in zip(begins, rates, strict=True)
        )

    def field(self, name: str, subject: str, thing: Any) -> Datum:
        if name == "class":
            return spellings(type(thing))
        if name == "optimizer":
            held = self._optimizers.name_of(asked(thing, "optimizer"))
            return ABSENT if held is None else Ref("optimizer", held)
        if name == "total_steps":
            return total_steps(thing)
        if name == "largest_number":
            return largest_number(thing)
        if name == "began":
            if thing not in self._began:
                self.begins(thing)
            return self._began[thing]
        return UNKNOWN


def _rates(optimizer: Any) -> list[Any]:
    """The learning rates of an optimizer's groups."""
    rates = [group.get("lr") for group in groups_of(optimizer)]
    return [one_number(each) if isinstance(each, torch.Tensor) else each for each in rates]


def steps_made(optimizer: Any, loaded: Any = None) -> int:
    """The number of updates in an optimizer's state; 0 if the state has none.

    `loaded` is the return value of the call that loaded the state.
    """
    state = asked(optimizer, "state")
    made = [
        int(values["step"])
        for values in (state.values() if isinstance(state, Mapping) else ())
        if isinstance(values, Mapping) and "step" in values
    ]
    return max(made, default=0)
