"""Training jobs with objects that answer oddly: `python odd_models.py OUT [CASE ...]`.

Each case is a function that trains something for a few steps and returns what it trained. The
script runs the cases one after the other, says on stderr which one begins, and saves the tensors.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

BEGINS = "case: "
"""Stands before a case's name on stderr."""
STEPS = 3
CASES: dict[str, Callable[[], Any]] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    CASES[function.__name__] = function
    return function


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.norm, self.two = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(functional.relu(self.norm(self.one(x))))


def train(
    model: nn.Module,
    between: Callable[[int], Any] = lambda step: None,
    make: Callable[..., Any] = torch.optim.Adam,
    weights: Any = None,
) -> list[torch.Tensor]:
    """A loop of a few steps; `between` is called in the middle of each."""
    held = list(nn.Module.parameters(model)) if weights is None else list(weights)
    optimizer = make(held)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = model(torch.randn(6, 4)).square().mean()
        between(step)
        loss.backward()
        optimizer.step()
    return held


def handed(*things: Any, **named: Any) -> int:
    """The spec has an event for this function: its arguments are read."""
    return len(things) + len(named)


# --- passes that do not compute -------------------------------------------------------------------


@case
def forward_on_meta() -> Any:
    model = Net()
    return train(
        model, lambda step: copy.deepcopy(model).to("meta")(torch.empty(6, 4, device="meta"))
    )


@case
def built_on_meta() -> Any:
    with torch.device("meta"):
        model = Net()
        model(torch.randn(6, 4))
    model.to_empty(device="cpu")
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.1)
    model.norm.reset_running_stats()
    return train(model)


@case
def flops_on_meta() -> Any:
    from torch.utils.flop_counter import FlopCounterMode

    model = Net()

    def count(step: int) -> None:
        with torch.device("meta"), FlopCounterMode(display=False):
            shapes = Net()
            optimizer = torch.optim.SGD(shapes.parameters(), lr=0.1)
            shapes(torch.randn(6, 4)).sum().backward()
            optimizer.step()

    return train(model, count)


@case
def forward_on_fakes() -> Any:
    from torch._subclasses import FakeTensorMode

    model = Net()

    def look(step: int) -> None:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            copied = Net()
            copied(torch.randn(6, 4)).sum().backward()
            copied(mode.from_tensor(torch.randn(6, 4))).sum()

    return train(model, look)


@case
def functional_call() -> Any:
    model = Net()
    weights = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    optimizer = torch.optim.SGD(weights.values(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.func.functional_call(model, weights, (torch.randn(6, 4),)).square().mean().backward()
        optimizer.step()
    return list(weights.values())


@case
def func_grad() -> Any:
    model = Net().eval()
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def loss_of(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        out = torch.func.functional_call(model, weights, (x,))
        return functional.cross_entropy(out, torch.zeros(6, dtype=torch.long))

    for _ in range(STEPS):
        grads, _ = torch.func.grad_and_value(loss_of)(weights, torch.randn(6, 4))
        weights = {name: weights[name] - 0.1 * grads[name] for name in weights}
    return list(weights.values())


@case
def func_grad_beside_training() -> Any:
    model = Net()

    def look(step: int) -> None:
        torch.func.grad(lambda x: model.two(functional.dropout(model.one(x))).sum())(
            torch.randn(6, 4)
        )
        torch.func.jvp(model.one, (torch.randn(6, 4),), (torch.randn(6, 4),))
        torch.func.jacrev(model.one)(torch.randn(4))
        torch.func.jacfwd(model.one)(torch.randn(4))
        torch.func.hessian(lambda x: model.one(x).square().sum())(torch.randn(4))
        torch.vmap(model.one)(torch.randn(5, 6, 4))
        torch.autograd.functional.vjp(model.one, torch.randn(6, 4), torch.randn(6, 8))

    return train(model, look)


@case
def ensemble() -> Any:
    models = [nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)) for _ in range(3)]
    weights, buffers = torch.func.stack_module_state(models)
    base = copy.deepcopy(models[0]).to("meta")
    optimizer = torch.optim.SGD(weights.values(), lr=0.1)

    def one(weights: Any, buffers: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(base, (weights, buffers), (x,))

    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.vmap(one, (0, 0, None))(
            weights, buffers, torch.randn(6, 4)
        ).square().mean().backward()
        optimizer.step()
    return list(weights.values())


@case
def gradients_of_samples() -> Any:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def loss_of(weights: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.func.functional_call(model, weights, (x.unsqueeze(0),))
        return functional.cross_entropy(out, y.unsqueeze(0))

    def look(step: int) -> None:
        weights = {name: p.detach() for name, p in model.named_parameters()}
        y = torch.zeros(6, dtype=torch.long)
        torch.vmap(torch.func.grad(loss_of), (None, 0, 0))(weights, torch.randn(6, 4), y)

    return train(model, look)


@case
def gradients_of_texts() -> Any:
    model = nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 9))

    def loss_of(weights: Any, tokens: torch.Tensor) -> torch.Tensor:
        out = torch.func.functional_call(model, weights, (tokens[:-1],))
        return functional.cross_entropy(out, tokens[1:])

    def look(step: int) -> None:
        weights = {name: p.detach() for name, p in model.named_parameters()}
        for _ in range(6):
            texts = torch.randint(9, (6, 21))
            torch.vmap(torch.func.grad(loss_of), (None, 0))(weights, texts)

    look(0)
    return train(nn.Linear(4, 2), look)


@case
def forward_mode() -> Any:
    import torch.autograd.forward_ad as ad

    model = Net()

    def look(step: int) -> None:
        with ad.dual_level():
            model(ad.make_dual(torch.randn(6, 4), torch.randn(6, 4)))

    return train(model, look)


@case
def exported() -> Any:
    model = Net().eval()
    return train(model, lambda step: torch.export.export(model, (torch.randn(6, 4),)))


@case
def traced_by_fx() -> Any:
    from torch.fx.experimental.proxy_tensor import make_fx

    model = Net()

    def look(step: int) -> None:
        torch.fx.symbolic_trace(model)(torch.randn(6, 4))
        make_fx(lambda x: model.two(x))(torch.randn(6, 8))
        make_fx(lambda x: functional.relu(x) @ x.t(), tracing_mode="fake")(torch.randn(6, 8))

    return train(model, look)


@case
def traced_by_jit() -> Any:
    model = Net()

    def look(step: int) -> None:
        torch.jit.trace(model.one, torch.randn(6, 4))(torch.randn(6, 4))
        torch.jit.script(model.two)(torch.randn(6, 8))

    return train(model, look)


# --- optimizers -----------------------------------------------------------------------------------


class Own:
    """An optimizer of no base class."""

    def __init__(self, parameters: Any, lr: float = 0.05) -> None:
        self.weights, self.lr = list(parameters), lr

    def update(self) -> None:
        with torch.no_grad():
            for weight in self.weights:
                if weight.grad is not None:
                    weight -= self.lr * weight.grad

    def zero_grad(self) -> None:
        for weight in self.weights:
            weight.grad = None


@case
def step_of_me() -> Any:
    class Mine(Own):
        def step(me, closure=None):  # type: ignore[no-untyped-def]
            me.update()

    return train(Net(), make=Mine)


@case
def step_of_s_with_closure() -> Any:
    class Mine(torch.optim.Optimizer):
        def __init__(s, parameters):  # type: ignore[no-untyped-def]
            super().__init__(parameters, {"lr": 0.05})

        def step(s, closure):  # type: ignore[no-untyped-def]
            loss = closure()
            with torch.no_grad():
                for group in s.param_groups:
                    for weight in group["params"]:
                        weight -= group["lr"] * weight.grad
            return loss

    model = Net()
    optimizer = Mine(model.parameters())

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.randn(6, 4)).square().mean()
        loss.backward()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure)
    optimizer.step(closure=closure)
    return list(model.parameters())


@case
def step_is_static() -> Any:
    class Mine(Own):
        @staticmethod
        def step(optimizer=None):  # type: ignore[no-untyped-def]
            if optimizer is not None:
                optimizer.update()

        @classmethod
        def zero_grad(cls, held=()):  # type: ignore[no-untyped-def]
            return None

    model = Net()
    optimizer = Mine(model.parameters())
    train(model, lambda step: (optimizer.step(), optimizer.step(optimizer)))
    return list(model.parameters())


@case
def step_is_an_attribute() -> Any:
    class Mine(Own):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters)
            self.step = functools.partial(Own.update, self)

    return train(Net(), make=Mine)


@case
def step_is_an_object() -> Any:
    class Step:
        def __get__(self, thing: Any, kind: Any) -> Any:
            return self if thing is None else functools.partial(self, thing)

        def __call__(self, thing: Any) -> None:
            Own.update(thing)

    class Mine(Own):
        step = Step()

    return train(Net(), make=Mine)


@case
def step_takes_anything() -> Any:
    class Mine(Own):
        def step(*args, **kwargs):  # type: ignore[no-untyped-def]
            args[0].update()

        def zero_grad(*args, **kwargs):  # type: ignore[no-untyped-def]
            Own.zero_grad(args[0])

    class Based(torch.optim.SGD):
        def step(*args, **kwargs):  # type: ignore[no-untyped-def]
            return torch.optim.SGD.step(*args, **kwargs)

        def zero_grad(*args, **kwargs):  # type: ignore[no-untyped-def]
            return torch.optim.SGD.zero_grad(*args, **kwargs)

    model = Net()
    based = Based(model.parameters(), 0.01)
    return train(model, lambda step: (based.step(), based.zero_grad()), make=Mine)


@case
def step_is_built_in() -> Any:
    class Mine(Own):
        step = sys.getrecursionlimit
        zero_grad = dict.clear  # type: ignore[assignment]

    mine = Mine([torch.zeros(2, requires_grad=True)])
    return train(Net(), lambda step: mine.step())


@case
def step_before_it_is_built() -> Any:
    class Mine(torch.optim.SGD):
        def __init__(self, parameters: Any, lr: float) -> None:
            self.zero_grad_or_not()
            super().__init__(parameters, lr)

        def zero_grad_or_not(self) -> None:
            for method in (self.step, self.zero_grad):
                with contextlib.suppress(AttributeError):
                    method()

    return train(Net(), make=functools.partial(Mine, lr=0.1))


@case
def optimizer_without_dict() -> Any:
    class Slotted:
        __slots__ = ("weights",)

        def __init__(self, weights: Any) -> None:
            self.weights = list(weights)

        def zero_grad(self) -> None:
            Own.zero_grad(self)  # type: ignore[arg-type]

        def step(self) -> None:
            with torch.no_grad():
                for weight in self.weights:
                    weight -= 0.05 * weight.grad

    return train(Net(), make=Slotted)


@case
def optimizer_with_odd_state() -> Any:
    class Odd(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            super().step()
            for weight in self.param_groups[0]["params"]:
                self.state[weight] = [object(), None]
            self.state["note"] = {"step": None, "history": [1, 2]}
            self.state[weight] = {"step": None, 3: torch.zeros(2), "object": object(), "none": None}
            self.state[None] = None

    def make(weights: list[torch.Tensor]) -> Any:
        groups = [{"params": weights, "betas": torch.tensor([0.9, 0.99])}, {"params": []}]
        return Odd(groups, lr=0.1)

    model = Net()
    optimizer = make(list(model.parameters()))
    train(model, lambda step: optimizer.load_state_dict(optimizer.state_dict()), make=make)
    optimizer.state = None  # type: ignore[assignment]
    return train(model)


@case
def optimizer_with_odd_groups() -> Any:
    class Mine(Own):
        def __init__(self, weights: Any) -> None:
            super().__init__(weights)
            self.param_groups = [
                {"lr": torch.tensor([0.1, 0.2]), "weight_decay": None},
                {"params": None, "lr": "none"},
                {"params": iter(self.weights), "lr": object()},
                {"params": dict(enumerate(self.weights)), "lr": numpy.float32(0.1)},
                {"params": self.weights[0], "lr": torch.empty((), device="meta")},
            ]

        def step(self) -> None:
            self.update()

    return train(Net(), make=Mine)


@case
def optimizer_that_answers_anything() -> Any:
    class Anything(Own):
        def __getattr__(self, name: str) -> Any:
            return Anything([])

        def step(self) -> None:
            self.update()

    class Nothing(Own):
        def __getattr__(self, name: str) -> Any:
            raise KeyError(name)

        def step(self) -> None:
            self.update()

    train(Net(), make=Nothing)
    return train(Net(), make=Anything)


@case
def optimizer_that_compares_oddly() -> Any:
    class Mine(torch.optim.SGD):
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            raise ValueError("not to be compared")

        def __bool__(self) -> bool:
            raise ValueError("neither")

        def __len__(self) -> int:
            raise ValueError("no length")

    class Scheduled(Own):
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> Any:
            return torch.ones(2)

        def step(self) -> None:
            self.update()

    train(Net(), make=Scheduled)
    return train(Net(), make=functools.partial(Mine, lr=0.1))


# --- modules --------------------------------------------------------------------------------------


def odd(**methods: Any) -> Callable[[], nn.Module]:
    """A class of networks with odd methods; it is used as a root, a layer, and beside both."""
    return type("Odd", (Net,), methods)


ASKED_BY_TORCH = ("_is_replica", "_is_full_backward_hook")


def used(make: Callable[[], nn.Module], clears: bool = True) -> Any:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = make()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)

    inside = train(Outer())
    model = make()
    model_of = {"model": model.state_dict(), "itself": 1}
    torch.save(model_of, "/dev/null")
    handed(model, named=model)

    def between(step: int) -> None:
        handed(model)
        if clears:
            model.zero_grad()

    return [*inside, *train(model, between)]


def raising(*args: Any, **kwargs: Any) -> Any:
    raise ZeroDivisionError("do not ask")


@case
def eq_raises() -> Any:
    return used(odd(__eq__=raising, __hash__=nn.Module.__hash__))


@case
def eq_is_a_tensor() -> Any:
    return used(odd(__eq__=lambda self, other: torch.ones(3), __hash__=lambda self: 1))


@case
def hash_is_none() -> Any:
    class Unhashable(nn.Module):
        __hash__ = None  # type: ignore[assignment]

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight

        def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
            yield self.weight

    model = Unhashable()
    return train(model, weights=[model.weight])


@case
def hash_raises() -> Any:
    class Raising(nn.Module):
        __hash__ = raising

        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight

    model = Raising()
    return train(model, weights=[model.weight])


@case
def bool_and_length_raise() -> Any:
    return used(odd(__bool__=raising, __len__=raising, __iter__=raising, __contains__=raising))


@case
def length_is_zero() -> Any:
    return used(odd(__len__=lambda self: 0))


@case
def repr_raises() -> Any:
    return used(odd(__repr__=raising, __str__=raising, __format__=raising))


@case
def getattr_raises_oddly() -> Any:
    def missing(self: Any, name: str) -> Any:
        try:
            return nn.Module.__getattr__(self, name)
        except AttributeError:
            if name in ASKED_BY_TORCH:
                raise
            raise LookupError(name) from None

    return used(odd(__getattr__=missing))


@case
def getattr_answers_anything() -> Any:
    def anything(self: Any, name: str) -> Any:
        try:
            return nn.Module.__getattr__(self, name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return lambda *args, **kwargs: None

    return used(odd(__getattr__=anything))


@case
def class_is_faked() -> Any:
    train(used_class := odd(__class__=property(lambda self: dict))())
    del used_class
    return used(odd(__class__=property(lambda self: nn.Linear)))


@case
def properties_raise() -> Any:
    names = (
        "is_enabled",
        "param_groups",
        "mesh",
        "state",
        "dtype",
        "item",
        "shape",
        "sampler",
        "grad",
    )
    return used(odd(**{name: property(raising) for name in names}))


@case
def parameters_are_overridden() -> Any:
    def twice(self: Any, recurse: bool = True) -> Iterator[nn.Parameter]:
        yield from nn.Module.parameters(self, recurse)
        yield from nn.Module.parameters(self, recurse)

    used(odd(parameters=twice))
    used(odd(parameters=lambda self, recurse=True: []))
    used(odd(parameters=lambda self: list(nn.Module.parameters(self))))
    used(odd(parameters=raising), clears=False)
    return used(odd(parameters=lambda self, recurse=True: iter(())))


@case
def methods_are_odd() -> Any:
    names = ("modules", "children", "named_buffers", "buffers", "extra_repr", "get_parameter")
    return used(odd(**dict.fromkeys(names, raising)))


@case
def training_is_odd() -> Any:
    class Odd(Net):
        training = property(lambda self: numpy.bool_(True), lambda self, value: None)  # type: ignore[assignment]

    class Worse(Net):
        @property  # type: ignore[override]
        def training(self) -> Any:
            return torch.tensor([True, False])

        @training.setter
        def training(self, value: Any) -> None: ...

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.two(self.one(x))

    used(Odd)
    return used(Worse)


@case
def metaclass_is_odd() -> Any:
    class Meta(type):
        def __instancecheck__(cls, thing: Any) -> bool:
            return True

        def __eq__(cls, other: object) -> bool:
            return False

        def __hash__(cls) -> int:
            return 7

    class Odd(Net, metaclass=Meta):
        pass

    return used(Odd)


@case
def attributes_are_odd() -> Any:
    class Odd(Net):
        def __init__(self) -> None:
            super().__init__()
            self.itself: list[Any] = []
            self.itself.append(self.itself)
            self.huge, self.negative = 10**400, -(2**70)
            self.text = "\ud800 and \0"
            self.number, self.array = numpy.float64("nan"), numpy.array(None, dtype=object)
            self.big = numpy.zeros((3, 0))
            self.tuple = collections.namedtuple("Pair", "a b")(1, float("inf"))
            self.lookup = collections.defaultdict(list)
            self.kinds = [torch.float32, torch.device("cpu"), None]
            self.held = [self]

    return used(Odd)


@case
def names_are_odd() -> Any:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module("a layer", nn.Linear(4, 4))
            self.add_module("ü/\ud800", nn.Linear(4, 4))
            self.add_module("x" * 5000, nn.Linear(4, 4))
            self.register_parameter("ünicode", nn.Parameter(torch.ones(4)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.children():
                x = layer(x)
            return x * getattr(self, "ünicode")  # noqa: B009

    return used(Odd)


class Metric(nn.Module):
    """As metrics of a well-known library: its hash reads what its constructor sets last."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        handed(self)
        self.zero_grad()
        self._defaults = {"total": 0.0}

    def __hash__(self) -> int:
        return hash((id(self), *self._defaults))

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        assert self.__dict__["_defaults"] is not None or recurse
        return super().parameters(recurse)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Resets nothing of torch's."""

    def __getattr__(self, name: str) -> Any:
        if name == "total":
            return self._defaults[name]
        return nn.Module.__getattr__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_defaults", {}):
            raise RuntimeError(name)
        nn.Module.__setattr__(self, name, value)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach().mean() * self.scale.detach()


@case
def under_construction() -> Any:
    model = Net()
    metric = Metric()
    made: list[Metric] = []
    return train(model, lambda step: (metric(torch.ones(2)), made.append(Metric())))


@case
def construction_fails() -> Any:
    class Half(Net):
        def __init__(self) -> None:
            super().__init__()
            held.append(self)
            raise ValueError("half built")

    class Without(nn.Module):
        def __init__(self) -> None:
            held.append(self)

    held: list[Any] = []
    model = Net()

    def build(step: int) -> None:
        for kind in (Half, Without):
            try:
                kind()(torch.randn(6, 4))
            except (ValueError, AttributeError):
                handed(*held)

    return train(model, build)


@case
def layers_are_shared() -> Any:
    class Twice(nn.Sequential):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * 2

    layer = nn.Linear(4, 4)
    model = Twice(layer, nn.ReLU(), layer, layer)
    model.register_parameter("third", layer.weight)
    return train(model)


@case
def contains_itself() -> Any:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Linear(4, 2)
            self.parts = nn.ModuleList([self.one])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.one(x)

    model = Inner()
    model.one.outer = model
    return train(model)


@case
def deep() -> Any:
    model: nn.Module = nn.Linear(4, 2)
    for _ in range(150):
        model = nn.Sequential(model)
    sys.setrecursionlimit(5000)
    return train(model)


@case
def lazy() -> Any:
    model = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(2))
    model.zero_grad()
    torch.optim.SGD(model.parameters(), lr=0.1).zero_grad()
    handed(model, *model.parameters())
    return train(model)


@case
def parametrized() -> Any:
    one = nn.utils.weight_norm(nn.Linear(4, 8))
    two = parametrizations.weight_norm(nn.Linear(8, 8))
    three = parametrizations.spectral_norm(nn.Linear(8, 8))
    four = parametrizations.orthogonal(nn.Linear(8, 4))
    model = nn.Sequential(one, two, nn.ReLU(), nn.utils.spectral_norm(nn.Linear(8, 8)), three, four)

    def remove(step: int) -> None:
        if step == 1:
            nn.utils.parametrize.remove_parametrizations(two, "weight")

    return train(model, remove)


@case
def layers_are_replaced() -> Any:
    model = Net()

    def replace(step: int) -> None:
        model.two = nn.Linear(8, 2)
        model.one.bias = nn.Parameter(torch.zeros(8))
        model.extra = nn.Linear(2, 2)
        del model.extra

    return train(model, replace)


@case
def deep_copied() -> Any:
    model = Net()
    copies: list[Any] = []
    return train(model, lambda step: copies.append(copy.deepcopy(model)(torch.randn(6, 4))))


@case
def shared_memory() -> Any:
    model = Net()
    model.share_memory()
    return train(model, lambda step: torch.randn(3).share_memory_())


@case
def in_a_dataclass() -> Any:
    @dataclasses.dataclass(eq=True)
    class Bag:
        model: nn.Module
        x: torch.Tensor
        more: Any = None
        unset: Any = dataclasses.field(init=False)

        @property
        def raises(self) -> Any:
            return raising()

    model = Net()
    bag = Bag(model, torch.randn(6, 4))
    bag.more = bag
    return train(model, lambda step: handed(bag, bag=bag))


# --- tensors --------------------------------------------------------------------------------------


class Named(torch.Tensor):
    """A subclass by `__torch_function__`."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


class Strict(torch.Tensor):
    """A subclass that refuses all that a training loop does not do."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in (
            "isfinite",
            "vector_norm",
            "tolist",
            "__repr__",
            "shape",
        ):
            raise NotImplementedError(func)
        return super().__torch_function__(func, types, args, kwargs or {})


@case
def subclassed_by_function() -> Any:
    used_here = []
    for kind in (Named, Strict):
        model = Net()
        model.one.weight = nn.Parameter(torch.randn(8, 4).as_subclass(kind))
        used_here += train(
            model, lambda step, kind=kind, model=model: model(torch.randn(6, 4).as_subclass(kind))
        )
    return [weight.as_subclass(torch.Tensor) for weight in used_here]


class Wrapped(torch.Tensor):
    """A subclass by `__torch_dispatch__`, with its elements in another tensor."""

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Wrapped:
        made = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, dtype=held.dtype, device=held.device, requires_grad=held.requires_grad
        )
        made.held = held.detach()
        return made

    def __repr__(self, **kwargs: Any) -> str:
        raise NotImplementedError

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def inside(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(map(inside, value))
            return value.held if isinstance(value, Wrapped) else value

        out = func(*inside(args), **{k: inside(v) for k, v in (kwargs or {}).items()})
        if func.__name__.split(".")[0].endswith("_"):
            return args[0]
        return Wrapped(out) if isinstance(out, torch.Tensor) else out


@case
def subclassed_by_dispatch() -> Any:
    model = nn.Linear(4, 2)
    model.weight = nn.Parameter(Wrapped(torch.randn(2, 4)))
    make = functools.partial(torch.optim.SGD, lr=0.1, foreach=False)
    weight, bias = train(model, make=make)
    return [weight.held, bias.held if isinstance(bias, Wrapped) else bias]


@case
def dispatch_mode() -> Any:
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class Function(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(getattr(func, "__name__", "?"))
            return func(*args, **(kwargs or {}))

    model = Net()
    with Dispatch(), Function():
        held = train(model)
    return [*held, torch.tensor(list("".join(seen).encode()))]


@case
def odd_buffers() -> Any:
    model = Net()
    buffers = {
        "eight": torch.randn(4).to(torch.float8_e4m3fn),
        "scales": torch.ones(4).to(torch.float8_e8m0fnu),
        "coarse": torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8),
        "channels": torch.quantize_per_channel(
            torch.randn(3, 2), torch.ones(3), torch.zeros(3), 0, torch.qint8
        ),
        "sparse": torch.eye(3).to_sparse(),
        "rows": torch.eye(3).to_sparse_csr(),
        "blocks": torch.eye(4).to_sparse_bsr((2, 2)),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "jagged": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        "empty": torch.empty(0, 3),
        "zero": torch.tensor(1.5),
        "meta": torch.empty(3, device="meta"),
        "turned": torch.randn(3, dtype=torch.complex64).conj(),
        "half": torch.randn(3, dtype=torch.complex32),
        "spread": torch.ones(1).expand(5),
        "negative": torch.randn(3, dtype=torch.complex64).conj().imag,
        "mkldnn": torch.randn(3).to_mkldnn(),
        "integers": torch.tensor([2**63 - 1, -(2**63)]),
        "unsigned": torch.tensor([1, 2], dtype=torch.uint64),
        "none": None,
    }
    for name, buffer in buffers.items():
        model.register_buffer(f"{name}_", buffer)
    return train(model, lambda step: handed(*buffers.values(), all=buffers))


@case
def odd_parameters() -> Any:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pairs = nn.Parameter(torch.randn(4, 2, dtype=torch.complex64))
            self.scale = nn.Parameter(torch.tensor(1.0))
            self.empty = nn.Parameter(torch.empty(0, 4))
            self.wide = nn.Parameter(torch.randn(2, dtype=torch.float64))
            self.narrow = nn.Parameter(torch.randn(2, dtype=torch.bfloat16))
            self.integer = nn.Parameter(torch.arange(3), requires_grad=False)
            self.strided = nn.Parameter(torch.randn(2, 2).t())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out = (x.to(torch.complex64) @ self.pairs).abs() * self.scale
            return (out * self.wide * self.narrow) @ self.strided.double() + self.empty.sum()

    return train(Odd(), make=torch.optim.Adam)


@case
def sparse_gradients() -> Any:
    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(9, 4, sparse=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.table(x.abs().long().clamp(max=8))

    return train(Table(), make=functools.partial(torch.optim.SparseAdam, lr=0.01))


@case
def nested_inputs() -> Any:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for layout in (torch.strided, torch.jagged):
        for _ in range(STEPS):
            optimizer.zero_grad()
            x = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)], layout=layout)
            model(x).to_padded_tensor(0.0).square().mean().backward()
            optimizer.step()
    return list(model.parameters())


@case
def data_is_exchanged() -> Any:
    model = nn.Linear(4, 2)
    spare = nn.Parameter(torch.ones(3))
    model.register_parameter("spare", spare)

    def exchange(step: int) -> None:
        handed(spare, model)
        spare.data = torch.ones(2 + step, 3, dtype=(torch.float32, torch.float64)[step % 2])
        spare.grad = None

    return train(model, exchange, make=functools.partial(torch.optim.SGD, lr=0.1))


@case
def gradients_are_toggled() -> Any:
    model = Net()
    return train(model, lambda step: model.one.requires_grad_(step % 2 == 0))


@case
def inference_tensors() -> Any:
    model = Net()

    def look(step: int) -> None:
        with torch.inference_mode():
            out = model.eval()(torch.randn(6, 4))
            model.kept = out
            model.register_buffer("made", torch.ones(2))
            handed(out, list(model.parameters()))
            functional.cross_entropy(out, torch.zeros(6, dtype=torch.long))
        model.train()
        handed(out)
        model.one(torch.randn(6, 4))

    return train(model, look)


@case
def storage_is_freed() -> Any:
    model = Net()
    spare = nn.Parameter(torch.ones(1000))
    model.register_parameter("spare", spare)

    def free(step: int) -> None:
        spare.untyped_storage().resize_(0 if step % 2 == 0 else 4000)
        handed(spare, torch.ones(3).untyped_storage())
        if step % 2:
            spare.data.fill_(1.0)

    return [weight for weight in train(model, free) if weight is not spare]


@case
def resized_in_a_call() -> Any:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out = self.one(x.clone())
            if not x.requires_grad:
                x.resize_(2, 4).requires_grad_()
            return out

    return train(Odd())


@case
def graph_is_held() -> Any:
    model = Net()

    def look(step: int) -> None:
        x = torch.randn(6, 4, requires_grad=True)
        [gradient] = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        gradient.square().sum().backward()
        torch.utils.checkpoint.checkpoint(model, x, use_reentrant=True).sum().backward()

    return train(model, look)


# --- arguments ------------------------------------------------------------------------------------


@case
def odd_arguments() -> Any:
    class Batch(dict):  # type: ignore[type-arg]
        def __getattr__(self, name: str) -> Any:
            return self[name]

    class Raising(Mapping):  # type: ignore[type-arg]
        __getitem__ = __iter__ = __len__ = raising

    class Endless(Mapping):  # type: ignore[type-arg]
        def __getitem__(self, key: Any) -> Any:
            return self

        def __iter__(self) -> Iterator[Any]:
            return iter((1,))

        def __len__(self) -> int:
            return 1

    class Raised(list):  # type: ignore[type-arg]
        __len__ = __iter__ = __bool__ = __eq__ = raising

    circle: list[Any] = [torch.ones(2)]
    circle += [circle, {"circle": circle}]
    many: list[Any] = [[], []]
    for _ in range(60):
        many = [many, many]
    things: list[Any] = [
        Batch(x=torch.randn(2)),
        Raising(),
        Endless(),
        Raised([1]),
        circle,
        many,
        list(range(300_000)),
        [[i] for i in range(100_000)],
        ["text"] * 100_000,
        numpy.array([None, object(), [1]], dtype=object),
        numpy.zeros(3),
        collections.UserDict(x=torch.ones(2)),
        collections.deque([torch.ones(2)]),
        range(10**12),
        (i for i in range(3)),
        "\ud800",
        b"\xff",
        10**400,
        float("nan"),
        1j,
        torch.Size([2]),
        torch.float32,
        torch.nn,
        type,
        handed,
        Net,
    ]
    generated = things[14]
    model = Net()

    def look(step: int) -> None:
        for thing in things:
            handed(thing)
            handed(x=thing)
        handed(*things)
        handed(**{"\ud800": 1, "self": 2})
        assert step or next(generated) == 0

    return train(model, look)


@case
def odd_batches() -> Any:
    class Batch(dict):  # type: ignore[type-arg]
        def __getattr__(self, name: str) -> Any:
            return self[name]

    class Data(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __getitem__(self, index: int) -> Any:
            return torch.full((4,), float(index))

        def __len__(self) -> int:
            return 6

    class Sampler(torch.utils.data.Sampler):  # type: ignore[type-arg]
        shuffle = property(raising)

        def __iter__(self) -> Iterator[int]:
            return iter(range(6))

        def __len__(self) -> int:
            raise RuntimeError("no length")

    def circle(items: list[torch.Tensor]) -> Any:
        batch = Batch(x=torch.stack(items))
        batch["itself"] = batch
        batch["objects"] = numpy.array([object()])
        return batch

    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    loader = torch.utils.data.DataLoader(Data(), batch_size=2, sampler=Sampler(), collate_fn=circle)
    for batch in loader:
        optimizer.zero_grad()
        model(batch.x).square().mean().backward()
        optimizer.step()
    return list(model.parameters())


@case
def odd_keywords_of_layers() -> Any:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(this, inputs, self=None, result=None, callable=None, **kwargs):  # type: ignore[no-untyped-def]
            return this.layer(inputs)

    model = Odd()
    other = Odd()
    return train(
        model,
        lambda step: other(
            torch.randn(2, 4), result=1, callable=[2], arguments={}, output=object()
        ),
    )


@case
def odd_results() -> Any:
    class Out(nn.Module):
        def __init__(self, out: Any) -> None:
            super().__init__()
            self.out, self.layer = out, nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> Any:
            self.layer(x)
            return self.out

    circle: list[Any] = []
    circle.append(circle)
    outs = [
        circle, None, 1, "text", object(), {"a": None}, numpy.array([object()]), (i for i in ()),
        [[]] * 100_000, dict.fromkeys(range(1000)), Net(), torch.empty(0),
    ]  # fmt: skip
    parts = [Out(out) for out in outs]
    return train(Net(), lambda step: [part(torch.randn(2, 4)) for part in parts])


def main() -> None:
    out, *names = sys.argv[1:]
    torch.set_num_threads(1)
    found = {}
    for name in names or CASES:
        print(f"{BEGINS}{name}", file=sys.stderr, flush=True)
        torch.manual_seed(0)
        weights = [weight.detach().clone() for weight in CASES[name]()]
        found[name] = (weights, torch.get_rng_state())
        del weights
        gc.collect()
    print(BEGINS, file=sys.stderr, flush=True)
    torch.save(found, out)


if __name__ == "__main__":
    main()
