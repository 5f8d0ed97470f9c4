"""What Python says of a watched function is what it says without tspec, as far as code objects let it."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import dataloader

from tspec.runtime.live import EventSpec, LiveJob, WatchSpec

EVENTS = (
    "torch.nn.functional.*",
    "torch.matmul",
    "torch.nn.Linear",
    "torch.nn.init.xavier_uniform_",
    "torch.nn.utils.clip_grad_norm_",
    "torch.save",
    "torch.load",
)
SPEC = WatchSpec(
    tuple(EventSpec(path, (path,), family=path.endswith(".*")) for path in EVENTS),
)
# torch wraps `step` of a class of optimizers when the first one is built.
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "F.dropout": F.dropout,
    "F.cross_entropy": F.cross_entropy,
    "F.max_pool2d": F.max_pool2d,
    "F.fractional_max_pool2d_with_indices": F.fractional_max_pool2d_with_indices,
    "clip_grad_norm_": nn.utils.clip_grad_norm_,
    "xavier_uniform_": nn.init.xavier_uniform_,
    "torch.save": torch.save,
    "torch.load": torch.load,
    "Linear.__init__": nn.Linear.__init__,
    "Module.__call__": nn.Module.__call__,
    "Module.zero_grad": nn.Module.zero_grad,
    "SGD.step": torch.optim.SGD.step,
    "SGD.zero_grad": torch.optim.SGD.zero_grad,
    "backward": torch.autograd.backward,
    "iterator.__next__": vars(dataloader._BaseDataLoaderIter)["__next__"],
}
CODE = (
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_varnames", "co_nlocals",
    "co_freevars", "co_name", "co_qualname", "co_filename", "co_firstlineno", "co_flags",
)  # fmt: skip
FUNCTION = (
    "__defaults__", "__kwdefaults__", "__name__", "__qualname__", "__module__", "__doc__",
    "__dict__", "__annotations__", "__globals__", "__closure__",
)  # fmt: skip
READERS: dict[str, Callable[[Any], Any]] = {
    "signature": lambda f: str(inspect.signature(f)),
    "full argument names": lambda f: inspect.getfullargspec(f).args,
    "source": inspect.getsource,
    "source lines": inspect.getsourcelines,
    "source file": inspect.getsourcefile,
    "file": inspect.getfile,
    "module": inspect.getmodule,
    "wrapped": lambda f: getattr(f, "__wrapped__", None),
    "bound": lambda f: str(inspect.signature(f).bind_partial()),
    "copy": lambda f: copy.copy(f) is f and copy.deepcopy(f) is f,
}


def told(function: Any) -> dict[str, Any]:
    """All that is asked of one function."""
    return {
        **{name: getattr(function.__code__, name) for name in CODE},
        **{name: copy.copy(getattr(function, name)) for name in FUNCTION if name != "__globals__"},
        **{name: read(function) for name, read in READERS.items()},
    }


@pytest.fixture
def before() -> Iterator[dict[str, dict[str, Any]]]:
    found = {name: told(function) for name, function in FUNCTIONS.items()}
    codes = {name: function.__code__ for name, function in FUNCTIONS.items()}  # type: ignore[attr-defined]
    with LiveJob(SPEC, []):
        watched = [n for n, f in FUNCTIONS.items() if f.__code__ is not codes[n]]  # type: ignore[attr-defined]
        assert watched == list(FUNCTIONS)
        yield found


def test_functions_look_like_themselves(before: dict[str, dict[str, Any]]) -> None:
    after = {name: told(function) for name, function in FUNCTIONS.items()}
    assert after == before


def test_functions_are_pickled_by_their_names(before: dict[str, dict[str, Any]]) -> None:
    for function in (F.dropout, nn.utils.clip_grad_norm_, torch.save, torch.matmul, F.linear):
        assert pickle.loads(pickle.dumps(function)) is function


def test_a_builtin_says_its_name_and_what_it_is(before: dict[str, dict[str, Any]]) -> None:
    builtin = inspect.unwrap(torch.matmul)
    assert builtin is not torch.matmul and inspect.isbuiltin(builtin)
    assert torch.matmul.__name__ == "matmul" and torch.matmul.__doc__ == builtin.__doc__
    assert copy.deepcopy(torch.matmul) is torch.matmul


def scripted(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(torch.matmul(x, x), 0.0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_torchs_own_readers(before: dict[str, dict[str, Any]]) -> None:
    x = torch.ones(2, 2)
    assert torch.equal(torch.jit.script(scripted)(x), scripted(x))
    torch.overrides.get_testing_overrides.cache_clear()  # another test may have asked for them
    assert F.dropout in torch.overrides.get_testing_overrides()


def test_arguments_that_do_not_fit_are_told_of_as_without(
    before: dict[str, dict[str, Any]],
) -> None:
    with pytest.raises(
        TypeError, match=r"^dropout\(\) missing 1 required positional argument: 'input'$"
    ):
        F.dropout()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^dropout\(\) got an unexpected keyword argument 'q'$"):
        F.dropout(torch.ones(1), q=1)  # type: ignore[call-arg]


def parameters_of_all_kinds(a: Any, /, b: Any, c: Any = 3, *rest: Any, d: Any, e: Any = 5, **more: Any) -> Any:  # fmt: skip
    inner = lambda: (a, b)  # noqa: E731
    return inner(), c, rest, d, e, more


def closes(over: Any) -> FunctionType:
    def function(a: Any, *, k: Any = 1) -> Any:
        return a, k, over

    return function  # type: ignore[return-value]


def counts(to: int) -> Iterator[int]:
    yield from range(to)


def test_what_code_cannot_say() -> None:
    """The limits that docs/design/live.md names."""
    before, builtin = F.dropout.__code__, torch.matmul
    spec = WatchSpec((*SPEC.events, EventSpec("counts", (f"{__name__}.counts",))))
    with LiveJob(spec, []):
        assert F.dropout.__code__.co_names != before.co_names
        assert inspect.isfunction(torch.matmul) and inspect.unwrap(torch.matmul) is builtin
        assert list(counts(3)) == [0, 1, 2] and not inspect.isgeneratorfunction(counts)
    assert inspect.isgeneratorfunction(counts)


def test_arguments_arrive_as_they_were_given() -> None:
    from tspec.runtime.live.process import PROCESS

    def into(original: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: original(*args, **kwargs)

    class Owner:
        pass

    owner, closed = Owner(), closes("over")
    before = parameters_of_all_kinds.__code__
    assert PROCESS.exchange(parameters_of_all_kinds, owner, into)  # type: ignore[arg-type]
    assert PROCESS.exchange(closed, owner, into)
    try:
        assert parameters_of_all_kinds.__code__ is not before
        call = parameters_of_all_kinds
        assert call(1, 2, d=4) == ((1, 2), 3, (), 4, 5, {})
        assert call(1, b=2, d=4, a=0) == ((1, 2), 3, (), 4, 5, {"a": 0})
        assert call(1, 2, 9, 8, 7, d=4, e=6, f=1) == ((1, 2), 9, (8, 7), 4, 6, {"f": 1})
        assert closed(1, k=2) == (1, 2, "over")
    finally:
        PROCESS.release(owner)
    assert parameters_of_all_kinds.__code__ is before
