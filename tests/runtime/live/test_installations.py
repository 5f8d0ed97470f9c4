"""Installations in one process: they nest, begin and end in any order, and leave nothing behind."""

from __future__ import annotations

import builtins
import functools
import gc
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tspec
from tests.runtime.training import module
from tspec.runtime.edges import SkipCall, StateSource, WatchedCall
from tspec.runtime.live import EventSpec, FieldSpec, LiveJob, WatchSpec
from tspec.runtime.live.living import instances_of
from tspec.runtime.live.mechanisms import MECHANISMS
from tspec.runtime.live.process import PROCESS
from tspec.trace.model import Begin
from tspec.trace.read import read_trace

pytestmark = pytest.mark.filterwarnings("ignore:.*reduce_op.*:FutureWarning")
STEP = EventSpec("optimizer.step", ("torch.optim.Optimizer.step",))
FORWARD = EventSpec("forward", ("torch.nn.Module.__call__",))
MATMUL = EventSpec(
    "matmul", ("torch.matmul",), (FieldSpec("input", ("tensor",)), FieldSpec("other", ("tensor",)))
)
DROPOUT = EventSpec("dropout", ("torch.nn.functional.dropout",), (FieldSpec("p", ("float",)),))
ATTENTION = EventSpec(
    "attention",
    ("torch.nn.functional.scaled_dot_product_attention",),
    (FieldSpec("is_causal", ("bool",)),),
)
ALL = WatchSpec((STEP, FORWARD, MATMUL, DROPOUT, ATTENTION))
FINITE = "for p in parameters after optimizer.step expect finite(p.data) else warn"
SMALL = "for s in calls(optimizer.step) expect s.lr < 0.01 else warn"


class Seen:
    """Keeps the events that it is told."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.fields: list[dict[str, Any]] = []
        self.steps = 0
        self.finished = 0

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        self.begun.append(call.event)
        self.fields.append(call.fields)

    def end(self, call: WatchedCall, source: StateSource) -> None:
        self.ended.append(call.event)

    def boundary(self, span: str, index: int, source: StateSource) -> None:
        self.steps += span == "step"

    def finish(self, source: StateSource) -> None:
        self.finished += 1


def places() -> Iterator[tuple[str, Any]]:
    """Everything that has a name in torch's modules, their classes, and Python's own hooks."""
    for name in dir(builtins):
        yield f"builtins.{name}", getattr(builtins, name)
    yield "sys.excepthook", sys.excepthook
    yield "warnings.warn", warnings.warn
    for number, finder in enumerate(sys.meta_path):
        yield f"sys.meta_path.{number}", finder
    for path, held in list(sys.modules.items()):
        if path.split(".")[0] not in ("torch", "multiprocessing"):
            continue
        for name, value in list(vars(held).items()):
            yield f"{path}.{name}", value
            if isinstance(value, type):
                for attribute, inner in list(vars(value).items()):
                    yield f"{path}.{name}.{attribute}", inner


def snapshot() -> dict[str, tuple[Any, ...]]:
    """What each name is bound to and, of functions, what they are made of."""
    found: dict[str, tuple[Any, ...]] = {}
    for path, value in places():
        held = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if isinstance(held, types.FunctionType):
            found[path] = (id(value), id(held.__code__), held.__defaults__, tuple(vars(held)))
        elif not isinstance(value, (dict, list, set, int, float, str, tuple, type(None))):
            found[path] = (id(value),)
    return found


def train(steps: int = 2) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        F.dropout(model(torch.ones(4, 3)), 0.25).square().mean().backward()
        optimizer.step()
    torch.matmul(torch.ones(2, 2), torch.ones(2, 2))


@pytest.fixture(scope="module")
def before() -> dict[str, tuple[Any, ...]]:
    """What there is before the first installation."""
    with LiveJob(ALL, []):
        train()  # torch itself wraps `step` of each class of optimizers once, and imports modules late
    return snapshot()


@pytest.fixture(autouse=True)
def nothing_changes(before: dict[str, tuple[Any, ...]]) -> Iterator[None]:
    """After the last installation all is what it was before the first."""
    yield
    after = snapshot()
    changed = [path for path in before if after.get(path) != before[path]]
    added = [path for path in after if path not in before and "tspec" in path]
    assert not changed and not added, (changed[:20], added[:20])


EVENTS = ["forward", "dropout", "optimizer.step"] * 2 + ["matmul"]


@pytest.mark.parametrize("order", [(1, 0), (0, 1)], ids=["last first", "first first"])
def test_two_installations_end_in_any_order(order: tuple[int, int]) -> None:
    seen = Seen(), Seen()
    jobs = LiveJob(ALL, [seen[0]]), LiveJob(WatchSpec((DROPOUT, MATMUL)), [seen[1]])
    for job in jobs:
        job.__enter__()
    train()
    jobs[order[0]].__exit__(None, None, None)
    train()
    jobs[order[1]].__exit__(None, None, None)
    train()
    few = [event for event in EVENTS if event in ("dropout", "matmul")]
    times = [2 if order[1] == number else 1 for number in (0, 1)]
    assert seen[0].begun == EVENTS * times[0] == seen[0].ended
    assert seen[1].begun == few * times[1] == seen[1].ended
    assert [each.finished for each in seen] == [1, 1]
    assert [each.steps for each in seen] == [2 * n for n in times]


def test_three_installations_of_which_the_middle_one_ends_first() -> None:
    seen = [Seen() for _ in range(3)]
    jobs = [LiveJob(ALL, [each]) for each in seen]
    for job in jobs:
        job.__enter__()
    for number in (1, 0, 2):
        train()
        jobs[number].__exit__(None, None, None)
    assert [len(each.begun) // len(EVENTS) for each in seen] == [2, 1, 3]


def test_the_same_hooks_twice() -> None:
    hooks = module(SMALL)
    outer: list[Any] = []
    inner: list[Any] = []
    with hooks.install(callback=outer.append):
        train()
        with hooks.install(callback=inner.append):
            train()
        train()
    assert (len(outer), len(inner)) == (6, 2)


def test_what_was_found_is_said_when_the_block_ends(capfd: pytest.CaptureFixture[str]) -> None:
    with module(SMALL).install():
        train()
        said = capfd.readouterr().err
    place = said.splitlines()[0].rpartition("; ")[2]
    assert place.startswith("at ") and "step()" in place
    assert said.startswith(
        "tspec: step 1 rank 0: t.r0 (<text>:7): expected s.lr < 0.01, but s.lr = 0.1; at "
    )
    assert capfd.readouterr().err == (
        "tspec: t.r0 (<text>:7): violated in 2 of 2 decided instances\n"
        "  step 1, rank 0: expected s.lr < 0.01, but s.lr = 0.1\n"
        f"  {place}\n"
        "tspec: 1 rule: 1 violated, 0 held. 2 instances, 2 decided.\n"
    )
    with module(FINITE).install():
        train()
    assert capfd.readouterr().err == (
        "tspec: nothing found; 1 rule: 0 violated, 1 held. 4 instances, 4 decided.\n"
    )
    with module(FINITE).install():
        pass
    assert capfd.readouterr().err == (
        "tspec: nothing was checked; 1 rule: 0 violated, 0 held. 0 instances, 0 decided.\n"
    )


def test_one_installation_is_entered_once() -> None:
    installed = module(FINITE).install()
    with installed, pytest.raises(RuntimeError, match=r"installed already: call install\(\) again"):
        installed.__enter__()
    with pytest.raises(RuntimeError, match=r"installed already: call install\(\) again"):
        installed.__enter__()


def test_two_modules_of_hooks_each_find_their_own() -> None:
    found: list[Any] = []
    small: list[Any] = []
    with (
        module(FINITE).install(callback=found.append),
        module(SMALL).install(callback=small.append),
    ):
        train()
    assert not found and len(small) == 2


@pytest.mark.parametrize("hooks_first", [True, False])
def test_hooks_and_a_recording_together(hooks_first: bool, tmp_path: Path) -> None:
    found: list[Any] = []
    blocks = [
        lambda: module(SMALL).install(callback=found.append),
        lambda: tspec.record(tmp_path / "both"),
    ]
    with ExitStack() as stack:
        for block in blocks if hooks_first else reversed(blocks):
            stack.enter_context(block())
        train()
    assert len(found) == 2
    with tspec.record(tmp_path / "alone"):
        train()
    both, alone = (
        [
            record.callable
            for record in read_trace(tmp_path / name).streams[0].records
            if isinstance(record, Begin)
        ]
        for name in ("both", "alone")
    )
    assert both == alone and "torch.nn.functional.dropout" in both


def test_a_sink_that_reads_is_not_seen_by_another() -> None:
    class Computes(Seen):
        def begin(self, call: WatchedCall, source: StateSource) -> None:
            super().begin(call, source)
            torch.matmul(torch.ones(2, 2), torch.ones(2, 2))

    seen = Computes(), Computes()
    with LiveJob(ALL, [seen[0]]), LiveJob(ALL, [seen[1]]):
        train()
    assert seen[0].begun == seen[1].begun == EVENTS


def test_a_call_that_one_leaves_out_is_not_made() -> None:
    class Skips(Seen):
        def begin(self, call: WatchedCall, source: StateSource) -> None:
            super().begin(call, source)
            if call.event == "optimizer.step":
                raise SkipCall

    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = model.weight.detach().clone()
    for sinks in ([Skips(), Seen()], [Seen(), Skips()]):
        with LiveJob(ALL, [sinks[0]]), LiveJob(ALL, [sinks[1]]):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    assert torch.equal(before, model.weight)


def test_installations_from_threads() -> None:
    """Threads install and end while others train: each call is made, and no name is missing."""
    faults: list[BaseException] = []
    stop = threading.Event()

    def trains() -> None:
        try:
            while not stop.is_set():
                train(1)
        except BaseException as fault:
            faults.append(fault)

    def installs() -> None:
        try:
            for _ in range(4):
                with LiveJob(ALL, [Seen()]):
                    train(1)
        except BaseException as fault:
            faults.append(fault)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    workers = [threading.Thread(target=trains) for _ in range(2)]
    installers = [threading.Thread(target=installs) for _ in range(2)]
    try:
        for thread in (*workers, *installers):
            thread.start()
        for thread in installers:
            thread.join()
    finally:
        stop.set()
        for thread in workers:
            thread.join()
        sys.setswitchinterval(interval)
    assert not faults


def test_objects_that_exist_are_found_and_no_other_is_held() -> None:
    """CPython refuses to resize a tuple that somebody holds, such as one that another thread still fills."""
    kept, model = (object(),), nn.Linear(1, 1)
    gc.disable()
    try:
        before = sys.getrefcount(kept)
        found = instances_of(frozenset({nn.Linear}))
        assert sys.getrefcount(kept) == before
    finally:
        gc.enable()
    assert any(each is model for each in found)
    assert {type(each) for each in found} == {nn.Linear}


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
def test_a_set_up_that_fails_leaves_nothing(beside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(job: LiveJob) -> None:
        raise OSError("in the middle")

    seen = Seen()
    with ExitStack() as stack:
        if beside:
            stack.enter_context(LiveJob(ALL, [seen]))
        now = snapshot()
        for place in (0, 4, len(MECHANISMS)):
            changed = (*MECHANISMS[:place], fails, *MECHANISMS[place:])
            monkeypatch.setattr("tspec.runtime.live.mechanisms.MECHANISMS", changed)
            with pytest.raises(OSError, match="in the middle"), LiveJob(ALL, [Seen()]):
                raise AssertionError("it began")
        after = snapshot()
        # The targets of exchanged code are made anew when a layer goes.
        assert after.keys() == now.keys()
        assert not [p for p in now if after[p] != now[p] and "__tspec_" not in p]
        train()
    assert seen.begun == (EVENTS if beside else [])


def test_modules_that_were_imported_in_between_keep_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "came_late.py").write_text("from torch import matmul\nfrom warnings import warn\n")
    monkeypatch.syspath_prepend(tmp_path)
    with LiveJob(ALL, [Seen()]):
        import came_late  # type: ignore[import-not-found]
    sys.modules.pop("came_late")
    assert came_late.matmul is torch.matmul and came_late.warn is warnings.warn


# --- what the user wrapped --------------------------------------------------------------------------

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Instance:
    """A callable object."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


WRAPS = [
    pytest.param(wrapped, id="wraps"),
    pytest.param(functools.partial, id="partial"),
    pytest.param(Instance, id="instance"),
]
QUERY = torch.ones(1, 2, 4)


def attend() -> None:
    F.scaled_dot_product_attention(QUERY, QUERY, QUERY, is_causal=True)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("count", [1, 2])
def test_a_builtin_that_was_wrapped_before(
    wrap: Wrap, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = wrap(F.scaled_dot_product_attention)
    monkeypatch.setattr(F, "scaled_dot_product_attention", own)
    seen = [Seen() for _ in range(count)]
    with ExitStack() as stack:
        for each in seen:
            stack.enter_context(LiveJob(ALL, [each]))
        attend()
    assert F.scaled_dot_product_attention is own
    assert [each.begun for each in seen] == [["attention"]] * count
    if wrap is wrapped:
        assert [each.fields for each in seen] == [[{"is_causal": True}]] * count
    monkeypatch.undo()


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_builtin_that_is_wrapped_in_between(wrap: Wrap) -> None:
    builtin = F.scaled_dot_product_attention
    seen = [Seen() for _ in range(3)]
    with LiveJob(ALL, [seen[0]]):
        own = wrap(F.scaled_dot_product_attention)
        F.scaled_dot_product_attention = own
        attend()
    assert F.scaled_dot_product_attention is own
    attend()
    with LiveJob(ALL, [seen[1]]), LiveJob(ALL, [seen[2]]):
        attend()
    assert F.scaled_dot_product_attention is own
    F.scaled_dot_product_attention = builtin
    assert [each.begun for each in seen] == [["attention"]] * 3


def test_a_stand_in_that_was_kept_is_the_builtin_again() -> None:
    builtin, seen = F.scaled_dot_product_attention, Seen()
    with LiveJob(ALL, [Seen()]):
        kept = [F.scaled_dot_product_attention]
        F.scaled_dot_product_attention = lambda *a, **k: kept[0](*a, **k)
    F.scaled_dot_product_attention = kept[0]
    attend()
    with LiveJob(ALL, [seen]):
        attend()
    assert seen.begun == ["attention"]
    F.scaled_dot_product_attention = builtin


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("when", ["before", "in between"])
def test_a_step_that_is_wrapped_on_an_instance(wrap: Wrap, when: str) -> None:
    model, seen = nn.Linear(2, 2), Seen()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def patch() -> None:
        optimizer.step = wrap(optimizer.step)  # type: ignore[method-assign]

    if when == "before":
        patch()
    with LiveJob(ALL, [seen]):
        if when == "in between":
            patch()
        own = optimizer.step
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert optimizer.step is own
    optimizer.step()
    assert seen.begun == ["forward", "optimizer.step"]


def test_a_method_that_is_no_function(monkeypatch: pytest.MonkeyPatch) -> None:
    class Owner:
        call = functools.partial(max, 3)

    monkeypatch.setitem(sys.modules, "owner_module", types.ModuleType("owner_module"))
    sys.modules["owner_module"].Owner = Owner  # type: ignore[attr-defined]
    before, seen = vars(Owner)["call"], Seen()
    with LiveJob(WatchSpec((EventSpec("call", ("owner_module.Owner.call",)),)), [seen]):
        assert Owner().call(5) == 5
    assert vars(Owner)["call"] is before and seen.begun == ["call"]


def test_code_that_the_user_exchanged_stays() -> None:
    def other(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        return input

    before = F.dropout.__code__
    with LiveJob(ALL, [Seen()]):
        F.dropout.__code__ = other.__code__
    assert F.dropout.__code__ is other.__code__
    F.dropout.__code__ = before


def test_collection_is_suspended_for_one_thread_at_a_time() -> None:
    """The end of one thread's block does not enable collection within another's."""
    inside, left = threading.Event(), threading.Event()
    collects: list[bool] = []

    def second() -> None:
        with PROCESS.without_collection():
            inside.set()
            left.wait(200)
            collects.append(gc.isenabled())

    thread = threading.Thread(target=second)
    with PROCESS.without_collection():
        thread.start()
        inside.wait(0.5)  # it comes in only where the fault is
    left.set()
    thread.join()
    assert collects == [False]
    assert gc.isenabled()
