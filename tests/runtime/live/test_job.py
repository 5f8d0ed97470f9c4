"""The live source on real loops: what is seen, what is named, and that all comes back."""

import builtins
import gc
import sys
import textwrap
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.functional import dropout as imported_before
from torch.utils.data import DataLoader, TensorDataset

from tspec.runtime.edges import Missing, Ref, SkipCall, StateSource, WatchedCall
from tspec.runtime.live import EventSpec, FieldSpec, LiveJob, WatchSpec
from tspec.runtime.live.script import run_script

TENSOR = ("tensor",)
FORWARD = EventSpec(
    "forward",
    ("torch.nn.Module.__call__",),
    (
        FieldSpec("module", ("entity", "module"), ("name", "self")),
        FieldSpec("inputs", ("list", TENSOR)),
        FieldSpec("output", TENSOR, ("name", "result"), True),
    ),
)
STEP = EventSpec(
    "optimizer.step",
    ("torch.optim.Optimizer.step",),
    (
        FieldSpec("optimizer", ("entity", "optimizer"), ("name", "self")),
        FieldSpec("lr", ("float",)),
    ),
)
CLEAR = EventSpec("optimizer.zero_grad", ("torch.optim.Optimizer.zero_grad",))
BACKWARD = EventSpec(
    "backward", ("torch.autograd.backward",), (FieldSpec("loss", TENSOR, ("name", "tensors")),)
)
DROPOUT = EventSpec(
    "dropout",
    ("torch.nn.functional.dropout",),
    (FieldSpec("p", ("float",)), FieldSpec("training", ("bool",))),
)
FETCH = EventSpec(
    "fetch",
    ("torch.utils.data.dataloader._BaseDataLoaderIter.__next__",),
    (FieldSpec("loader", ("entity", "loader")),),
)
SPEC = WatchSpec((FORWARD, STEP, CLEAR, BACKWARD, DROPOUT, FETCH))


@pytest.fixture(autouse=True)
def nothing_left() -> None:
    """Models and optimizers of other tests would be subjects too."""
    gc.collect()


class Seen:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[WatchedCall] = []
        self.opened: list[tuple[str, int]] = []
        self.finished = False
        self.at_begin: Callable[[WatchedCall, StateSource], None] = lambda call, source: None

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        self.calls.append(call)
        self.at_begin(call, source)

    def end(self, call: WatchedCall, source: StateSource) -> None:
        assert call.end == source.seq

    def boundary(self, span: str, index: int, source: StateSource) -> None:
        self.opened.append((span, index))

    def finish(self, source: StateSource) -> None:
        self.finished = True

    def of(self, event: str) -> list[WatchedCall]:
        return [call for call in self.calls if call.event == event]


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))


def train(model: nn.Module, optimizer: Any, loader: DataLoader[Any]) -> None:
    for x, y in loader:
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def data() -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.randn(8, 4), torch.randint(0, 2, (8,))), batch_size=4)


def test_a_plain_loop_is_seen_and_nested() -> None:
    seen, model, loader = Seen(), network(), data()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    with LiveJob(SPEC, [seen]):
        train(model, optimizer, loader)
    assert seen.finished
    assert [index for span, index in seen.opened if span == "step"] == [1, 2]
    assert [len(seen.of(e.name)) for e in SPEC.events] == [10, 2, 2, 2, 2, 2]
    root, inner = seen.of("forward")[:2]
    assert root.fields["module"] == Ref("module", "Sequential") and root.parent is None
    assert inner.fields["module"] == Ref("module", "0") and inner.parent is root
    assert seen.of("dropout")[0].fields == {"p": 0.5, "training": True}
    assert seen.of("optimizer.step")[0].fields == {
        "optimizer": Ref("optimizer", "optimizer.0"),
        "lr": 0.01,
    }
    assert [call.context.step for call in seen.of("optimizer.step")] == [1, 2]
    begins = [call.begin for call in seen.calls]
    assert begins == sorted(set(begins))


@pytest.mark.parametrize("name", ["update", "clear", "backward pass"])
def test_an_event_may_have_the_name_of_a_mechanism(name: str) -> None:
    seen, model, loader = Seen(), network(), data()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    callables = (*STEP.callables, *CLEAR.callables, *BACKWARD.callables)
    with LiveJob(WatchSpec((EventSpec(name, callables),)), [seen]):
        train(model, optimizer, loader)
    assert len(seen.of(name)) == 6


def test_everything_comes_back() -> None:
    code = {
        f: f.__code__ for f in (nn.Module.__call__, functional.dropout, torch.optim.Adam.zero_grad)
    }
    before = (builtins.__build_class__, torch.matmul, list(sys.meta_path), dict(vars(builtins)))
    spec = WatchSpec((*SPEC.events, EventSpec("matmul", ("torch.matmul",))))
    with LiveJob(spec, [Seen()]):
        assert torch.matmul is not before[1]
        train(network(), torch.optim.Adam([nn.Parameter(torch.ones(2))]), data())
    assert (
        builtins.__build_class__,
        torch.matmul,
        list(sys.meta_path),
        dict(vars(builtins)),
    ) == before
    assert all(function.__code__ is held for function, held in code.items())
    assert imported_before is functional.dropout


def test_a_name_that_was_imported_before_is_seen() -> None:
    seen = Seen()
    with LiveJob(SPEC, [seen]):
        imported_before(torch.ones(3), 0.25, training=False)
    assert [call.fields for call in seen.of("dropout")] == [{"p": 0.25, "training": False}]


def test_exceptions_end_calls_and_pass() -> None:
    seen, model = Seen(), network()
    with LiveJob(SPEC, [seen]), pytest.raises(RuntimeError):
        model(torch.ones(3, 5))
    assert [call.error for call in seen.of("forward")] == ["RuntimeError", "RuntimeError"]
    assert not seen.finished or all(call.end is not None for call in seen.calls)


def test_returned_is_known_of_calls_that_returned() -> None:
    returned = EventSpec("dropout", DROPOUT.callables, (FieldSpec("returned", ("bool",)),))
    seen = Seen()
    with LiveJob(WatchSpec((returned,)), [seen]), pytest.raises(ValueError, match="probability"):
        functional.dropout(torch.ones(3), 0.5)
        functional.dropout(torch.ones(3), 2.0)
    assert [call.fields for call in seen.of("dropout")] == [{"returned": True}, {}]


def test_faults_of_a_sink_pass_and_skipped_calls_are_not_made() -> None:
    seen, model = Seen(), network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

    def skip(call: WatchedCall, source: StateSource) -> None:
        if call.event == "optimizer.step":
            raise SkipCall

    seen.at_begin = skip
    before = [p.detach().clone() for p in model.parameters()]
    with LiveJob(SPEC, [seen]):
        train(model, optimizer, data())
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert all(call.end is not None and call.error is None for call in seen.of("optimizer.step"))

    def stop(call: WatchedCall, source: StateSource) -> None:
        if call.event == "backward":
            raise KeyError("stop here")

    seen.at_begin = stop
    with LiveJob(SPEC, [seen]), pytest.raises(KeyError, match="stop here"):
        train(model, optimizer, data())


def test_names_of_parameters() -> None:
    model, other = network(), nn.Linear(2, 1)
    model[0].tied = nn.ParameterDict({"weight": model[0].weight})
    loose = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([*model.parameters(), *other.parameters(), loose], lr=0.1)
    job = LiveJob(SPEC, [Seen()])
    with job:
        other(model(torch.ones(1, 4))).sum().backward()
        optimizer.step()
        names = job.fields("parameter", "names")
        assert list(names) == [
            "0.weight", "0.bias", "3.weight", "3.bias", "Linear.weight", "Linear.bias",
            "optimizer.0.param.6",
        ]  # fmt: skip
        assert names["0.weight"] == {"0.weight", "0.tied.weight"}
        assert job.fields("parameter", "module")["3.bias"] == Ref("module", "3")
        assert job.fields("parameter", "grad")["optimizer.0.param.6"] is Missing.ABSENT
        assert job.fields("module", "next")["0"] == Ref("module", "1")
        assert "torch.nn.Linear" in job.fields("module", "class")["0"].split()
        assert job.fields("optimizer", "parameters")["optimizer.0"] == {
            Ref("parameter", n) for n in names
        }


def test_wrappers_leave_no_trace_in_names() -> None:
    model = network()
    compiled = torch.compile(model, backend="eager")
    seen = Seen()
    job = LiveJob(SPEC, [seen])
    with job:
        compiled(torch.ones(2, 4)).sum().backward()
        assert list(job.fields("parameter", "data")) == ["0.weight", "0.bias", "3.weight", "3.bias"]
    assert [c.fields["module"] for c in seen.of("forward")] == [Ref("module", "Sequential")]


class Plain:
    """A user's own optimizer, no torch.optim.Optimizer."""

    def __init__(self, params: Any, lr: float) -> None:
        self.params, self.lr = list(params), lr

    def zero_grad(self) -> None:
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self) -> None:
        for p in self.params:
            p -= self.lr * p.grad


def test_an_optimizer_of_the_users_own() -> None:
    seen, model = Seen(), network()
    with LiveJob(SPEC, [seen]):
        train(model, Plain(model.parameters(), 0.5), data())

        class Later(Plain):
            def step(self) -> None:
                super().step()

        train(model, Later(model.parameters(), 0.25), data())
    assert [call.fields["lr"] for call in seen.of("optimizer.step")] == [0.5, 0.5, 0.25, 0.25]
    assert [index for span, index in seen.opened if span == "step"] == [1, 2, 3, 4]


def test_schedulers_do_not_hide_steps_that_were_wrapped_before() -> None:
    seen, model = Seen(), network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with LiveJob(SPEC, [seen]):
        train(model, optimizer, data())
        scheduler.step()
    assert len(seen.of("optimizer.step")) == 2


def test_threads_nest_by_themselves() -> None:
    import threading

    seen, model = Seen(), network()
    with LiveJob(SPEC, [seen]):
        threads = [threading.Thread(target=model, args=(torch.ones(2, 4),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    forward = seen.of("forward")
    roots = [call for call in forward if call.parent is None]
    assert len(roots) == 4 and len(forward) == 20
    assert all(call.parent in roots for call in forward if call.parent is not None)


SCRIPT = """
    import sys
    import late

    def prepare(text):
        return {"input_ids": [[1, 2]] * len(text)}

    class Model:
        def generate(self, start, limit=3):
            return start + [0] * limit

    print(sys.argv[1:], __name__, __file__)
    prepare(["a", "b"])
    Model().generate([1], limit=4)
    late.helper(2)
    sys.exit(7)
"""


def test_functions_of_the_script_and_of_later_imports(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    (tmp_path / "late.py").write_text("def helper(x):\n    return x * 10\n")
    ids = ("index", ("name", "result"), ("literal", "input_ids"))
    spec = WatchSpec(
        (
            EventSpec(
                "process",
                ("train.prepare",),
                (
                    FieldSpec("samples", ("int",), ("call", "count", (("name", "text"),), ())),
                    FieldSpec("rows", ("int",), ("call", "count", (ids,), ()), True),
                ),
            ),
            EventSpec(
                "generate",
                ("train.Model.generate",),
                (
                    FieldSpec("limit", ("int",)),
                    FieldSpec("wrong", ("int",), ("field", ("name", "self"), "no")),
                ),
            ),
            EventSpec(
                "help", ("late.helper",), (FieldSpec("y", ("int",), ("name", "result"), True),)
            ),
        )
    )
    seen, main, argv = Seen(), sys.modules["__main__"], sys.argv
    path = list(sys.path)
    try:
        assert run_script([str(script), "--x", "1"], LiveJob(spec, [seen])) == 7
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, path
        sys.modules.pop("late", None)
    assert [(call.event, call.fields) for call in seen.calls] == [
        ("process", {"samples": 2, "rows": 2}),
        ("generate", {"limit": 4, "wrong": Missing.NOT_RECORDED}),
        ("help", {"y": 20}),
    ]
    out, err = capfd.readouterr()
    assert out.strip() == f"['--x', '1'] __main__ {script}"
    assert err.count("generate.wrong is not recorded") == 1
    assert not seen.finished


class Forgets(Seen):
    """Keeps no call, and with it no tensor."""

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        pass


def test_a_model_that_the_script_drops_is_let_go() -> None:
    loader = data()
    with LiveJob(SPEC, [Forgets()]) as job:
        first = network()
        train(first, torch.optim.SGD(first.parameters(), lr=0.1), loader)
        dropped = weakref.ref(first)
        first = network()
        train(first, torch.optim.SGD(first.parameters(), lr=0.1), loader)
        gc.collect()
        assert dropped() is None
        assert {ref.partition(".")[0] for ref in job.subjects("parameter")} == {"Sequential#2"}
