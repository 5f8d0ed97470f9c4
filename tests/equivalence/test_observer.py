"""What is recorded of a job in this process, and which numbers it is given."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tspec.equivalence.cut import Cut, whole
from tspec.equivalence.generator import weights
from tspec.equivalence.observing.observer import Observer
from tspec.equivalence.observing.orders import Orders, Perturbation
from tspec.equivalence.observing.watch import WATCH
from tspec.equivalence.recording import (
    GRADIENT_SQUARES,
    ModuleInput,
    Recording,
    SkippedUpdate,
    TensorName,
    read,
)
from tspec.runtime.live import LiveJob

KINDS = ("inputs", "outputs", "output_grads", "param_grads", "params", "buffers", "losses")


class Net(nn.Module):
    """Two layers of which the second is computed again for the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(self.first(x))
        return checkpoint(self.second, x, use_reentrant=False) * self.scale


def train(net: nn.Module, steps: int, passes: int = 1) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(passes):
            net(torch.ones(2, 3)).square().mean().backward()
        optimizer.step()


def observed(folder: Path, orders: Orders, job: Callable[[], None]) -> Recording:
    gc.collect()  # a model of another test is none of this job
    with LiveJob(WATCH, [Observer(orders, folder, rank=0)]):
        job()
    return read(folder, 0)


def test_all_kinds_are_recorded_by_canonical_name(tmp_path: Path) -> None:
    net = Net()
    found = observed(tmp_path, Orders(1, KINDS), lambda: train(net, 1, passes=2)).tensors
    of = {kind: [name for name in found if name.kind == kind] for kind in KINDS}
    calls = [(name.name, name.microbatch, name.call) for name in of["outputs"]]
    once = [("first", 0), ("first", 1), ("second", 0), ("Net", 0)]
    assert calls == [(name, number, call) for number in (1, 2) for name, call in once]
    assert {(name.name, name.microbatch) for name in of["losses"]} == {("loss", 1), ("loss", 2)}
    assert len(of["inputs"]) == len(of["output_grads"]) == len(of["outputs"])
    assert [name.name for name in of["buffers"]] == ["scale"]
    names = [name for name, _ in net.named_parameters()]
    assert [name.name for name in of["param_grads"]] == names
    assert of["params"] == [TensorName("params", name, step) for step in (0, 1) for name in names]
    for name, parameter in net.named_parameters():
        assert torch.equal(found[TensorName("params", name, 1)], parameter)


def test_norms_of_gradients_come_after_the_gradients(tmp_path: Path) -> None:
    net = nn.Linear(3, 3)
    norms = []

    def job() -> None:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            net(torch.ones(2, 3)).square().mean().backward()
            norms.append(nn.utils.clip_grad_norm_(net.parameters(), 0.01))
            optimizer.step()

    found = observed(tmp_path, Orders(2, ("param_grads", "gradient_norms")), job).tensors
    names = [TensorName("gradient_norms", "norm", step) for step in (1, 2)]
    assert [found[name] for name in names] == norms
    kinds = (*(GRADIENT_SQUARES,) * 2, *("param_grads",) * 2, "gradient_norms")
    steps = [(name.kind, name.step) for name in found if not name.is_first_weight]
    assert steps == [(kind, step) for step in (1, 2) for kind in kinds]
    for step, norm in zip((1, 2), norms, strict=True):  # before gradients are scaled
        squares = [
            found[each] for each in found if (each.kind, each.step) == (GRADIENT_SQUARES, step)
        ]
        assert float(sum(squares)) == pytest.approx(float(norm) ** 2, rel=1e-6)


def test_of_a_pass_without_a_graph_the_second_is_recorded(tmp_path: Path) -> None:
    class Reentrant(Net):
        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(self.second, self.first(x), use_reentrant=True) * self.scale

    net = Reentrant()
    before = copy.deepcopy(net)
    orders = Orders(1, KINDS, perturbation=Perturbation(1, 0.5))
    found = observed(tmp_path, orders, lambda: train(net, 1)).tensors
    of = {kind: [name for name in found if name.kind == kind] for kind in KINDS}
    for kind in ("inputs", "outputs", "output_grads"):
        assert {(name.name, name.call) for name in of[kind]} == {
            ("first", 0),
            ("second", 0),
            ("Reentrant", 0),
        }
    # Nothing was perturbed once more: it is what the first pass had.
    kept = found[TensorName("outputs", "first", 1, 1)]
    assert torch.equal(found[TensorName("inputs", "second", 1, 1)], kept)
    assert torch.equal(found[TensorName("outputs", "second", 1, 1)], before.second(kept))


@pytest.mark.slow
def test_the_script_ends_with_the_last_step(tmp_path: Path) -> None:
    net, ended = Net(), []

    def job() -> None:
        train(net, 5)
        ended.append(True)

    with pytest.raises(SystemExit) as leaving:
        observed(tmp_path, Orders(2, ("params",)), job)
    assert (leaving.value.code, ended) == (0, [])
    steps = {name.step for name in read(tmp_path, 0).tensors if name.kind == "params"}
    assert steps == {0, 1, 2}


def test_weights_are_generated_before_the_first_pass(tmp_path: Path) -> None:
    found = observed(tmp_path, Orders(1, ("params",), 7), lambda: train(nn.LayerNorm(3), 1))
    assert found.filled == {"weight": 1.0, "bias": 0.0}
    expected = weights(7, "weight", whole((3,)), 1.0).float()
    assert torch.equal(found.tensors[TensorName("params", "weight", 0)], expected)


def test_weights_first_seen_after_an_update_are_left_alone(tmp_path: Path) -> None:
    """An average and a parameter that an optimizer alone holds are computed from what the update left."""
    net, scale = nn.Linear(3, 3), nn.Parameter(torch.ones(3))
    averages: list[nn.Module] = []
    scales: list[Tensor] = []

    def job() -> None:
        optimizer = torch.optim.SGD([*net.parameters(), scale], lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            (net(torch.ones(2, 3)) * scale).square().mean().backward()
            assert not scales or torch.equal(scale, scales[-1])
            optimizer.step()
            scales.append(scale.detach().clone())
            averages.append(copy.deepcopy(net))
            averages[-1](torch.ones(2, 3))

    found = observed(tmp_path, Orders(3, ("params",), 7), job).tensors
    left = [found[TensorName("params", "weight", step)] for step in (1, 2)]
    assert all(map(torch.equal, left, (each.weight for each in averages)))


def test_a_rank_is_given_its_piece_where_it_has_that_shape(tmp_path: Path) -> None:
    rows = Cut((6, 3), (((3, 3, 0, 1),), ((0, 3, 0, 1),)))
    net = nn.Linear(3, 3)
    before = net.bias.detach().clone()
    bias = Cut((6,), (((0, 2, 0, 1),),))
    cuts = {"weight": ("weight", rows, 0.0), "bias": ("bias", bias, 0.0)}
    found = observed(tmp_path, Orders(1, (), 7, cuts), lambda: train(net, 1)).tensors
    expected = weights(7, "weight", whole((6, 3)))[3:].float()
    assert torch.equal(found[TensorName("params", "weight", 0)], expected)
    assert torch.equal(found[TensorName("params", "bias", 0)], before)


@pytest.mark.slow
def test_bounds_of_modules_are_recorded_and_then_rewritten(tmp_path: Path) -> None:
    """What flows in, out and back goes on as it was ordered; what was there before is recorded."""
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    first, last = copy.deepcopy(net[0]), copy.deepcopy(net[2])
    given, made, back = (torch.full((2, 3), value) for value in (2.0, 3.0, 4.0))
    ordered = {
        TensorName(kind, name, 1, 1): value
        for kind, name, value in (("inputs", "2", given), ("outputs", "0", made))
    }
    ordered[TensorName("output_grads", "1", 1, 1)] = back
    orders = Orders(1, ("outputs", "output_grads"), rewrites=ordered)
    found = observed(tmp_path, orders, lambda: train(net, 1)).tensors
    of = {(name.kind, name.name): tensor for name, tensor in found.items()}
    assert torch.equal(of["outputs", "0"], first(torch.ones(2, 3)))
    assert torch.equal(of["outputs", "1"], made.tanh())
    assert torch.equal(of["outputs", "2"], last(given))
    # The layer kept its own result, which is the input of the next, for its backward pass.
    assert torch.equal(of["output_grads", "0"], back * (1 - given**2))


@pytest.mark.slow
def test_a_module_is_described_by_its_code_and_what_it_is_given(tmp_path: Path) -> None:
    net = Net()
    found = observed(tmp_path, Orders(1, KINDS), lambda: train(net, 1)).modules
    assert {name: each.parent for name, each in found.items()} == {
        "Net": "",
        "first": "Net",
        "second": "Net",
    }
    assert found["second"].inputs == (ModuleInput("second", ("outputs", "first"), True),)
    assert found["second"].kind == "Linear"
    file, line = found["Net"].defined.split(":")
    assert "def forward" in Path(file).read_text().splitlines()[int(line) - 1]
    line = found["first"].called
    assert line.startswith("tests/equivalence/test_observer.py:")
    assert found["first"].again == (line,) and found["second"].again == ()  # called twice in a line


class Mixer(nn.Module):
    """Adds what it is given by position, by name, and within containers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor, memory: Tensor, pair: list[Tensor], *, mask: Tensor) -> Tensor:
        return (x + memory + pair[0] * pair[1]) * mask * self.weight


class Mixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.mixer = nn.Linear(3, 3), Mixer()

    def forward(self, x: Tensor) -> Tensor:
        made = self.first(x)
        return self.mixer(made, mask=torch.ones(3), pair=[2 * made, self.mixer.weight], memory=x)


def test_all_tensors_that_a_module_is_given_are_followed_by_argument(tmp_path: Path) -> None:
    net = Mixing()
    found = observed(tmp_path, Orders(1, KINDS), lambda: train(net, 1))
    given = {each.name: (each.takes, each.numbers) for each in found.modules["mixer"].inputs}
    assert given == {
        "mixer": (("outputs", "first"), True),
        "mixer[mask]": ((), True),
        "mixer[pair.0]": ((), True),
        "mixer[pair.1]": ((), False),  # a parameter, which is compared as such
        "mixer[memory]": (("inputs", "Mixing"), True),
    }
    assert {name.name for name in found.tensors if name.kind == "inputs"} == {
        "Mixing",
        "first",
        "mixer",
    }


def test_further_inputs_with_a_place_are_recorded_and_rewritten(tmp_path: Path) -> None:
    net = Mixing()
    before = copy.deepcopy(net)
    pair, mask = (TensorName("inputs", f"mixer[{each}]", 1, 1) for each in ("pair.0", "mask"))
    gradient = replace(pair, kind="input_grads")
    ordered = {pair: torch.full((2, 3), 5.0), gradient: torch.zeros(2, 3)}
    orders = Orders(
        *(1, (*KINDS, "input_grads")), rewrites=ordered, further=(r"mixer\[pair\.[^.]+\]", "other")
    )
    found = observed(tmp_path, orders, lambda: train(net, 1)).tensors
    assert mask not in found
    made = before.first(torch.ones(2, 3))
    assert torch.equal(found[pair], 2 * made)  # what was there before
    assert torch.equal(found[TensorName("outputs", "mixer", 1, 1)], made + 1 + 5)
    assert gradient in found
    # What came back through `pair` was replaced by zeros: the bias has the gradient of `x` alone.
    whole = found[TensorName("output_grads", "mixer", 1, 1)]
    assert torch.equal(found[TensorName("param_grads", "first.bias", 1)], whole.sum(0))


def test_lines_of_the_script_are_known_that_make_losses_norms_and_updates(tmp_path: Path) -> None:
    net = nn.Linear(3, 3)

    def job() -> None:
        loss = net(torch.ones(2, 3)).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.01)
        torch.optim.SGD(net.parameters(), lr=0.1).step()

    lines = observed(tmp_path, Orders(1, ("losses",)), job).lines
    begins = job.__code__.co_firstlineno
    numbers = {kind: int(line.rpartition(":")[2]) - begins for kind, line in lines.items()}
    assert numbers == {"losses": 2, "gradient_norms": 3, "params": 4}
    assert {Path(line.rpartition(":")[0]).name for line in lines.values()} == {"test_observer.py"}


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [False, True], ids=["numbers", "tokens"])
def test_a_sample_changes_the_first_numbers_by_one_epsilon(tokens: bool, tmp_path: Path) -> None:
    def job() -> None:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Embedding(9, 3) if tokens else nn.Identity(), nn.Linear(3, 3))
        x = torch.arange(9) if tokens else torch.rand(9, 3) + 1
        net(x).sum().backward()

    name = TensorName("outputs", "0", 1, 1)
    runs = []
    for number in range(3):
        sample = Perturbation(number, 2.0**-10) if number else None
        (tmp_path / str(number)).mkdir()
        orders = Orders(1, ("outputs",), perturbation=sample)
        runs.append(observed(tmp_path / str(number), orders, job).tensors[name])
    plain, one, other = runs
    assert torch.allclose((one / plain - 1).abs(), torch.full_like(plain, 2.0**-10), rtol=1e-3)
    assert not torch.equal(one, other)


@pytest.mark.slow
def test_later_chunks_of_a_pipeline_are_not_perturbed_again(tmp_path: Path) -> None:
    """What they are given was made from perturbed inputs by the first one."""

    def job() -> None:
        torch.manual_seed(0)
        one, other = Net(), nn.Sequential(nn.Identity(), nn.Linear(3, 3))
        optimizer = torch.optim.SGD([*one.parameters(), *other.parameters()], lr=0.1)
        for _ in range(2):
            one(torch.ones(2, 3))
            other(torch.ones(2, 3)).sum().backward()
            optimizer.step()

    found = {}
    for once in (None, False, True):
        sample = None if once is None else Perturbation(1, once=once)
        (tmp_path / str(once)).mkdir()
        orders = Orders(2, ("inputs",), perturbation=sample)
        found[once] = observed(tmp_path / str(once), orders, job).tensors
    of_model = ("Net", "Sequential")
    names = [name for name in found[None] if name.name in of_model]
    moved = {
        once: [not torch.equal(found[None][name], found[once][name]) for name in names]
        for once in (False, True)
    }
    assert [name.name for name in names] == [*of_model, *of_model]
    assert moved == {False: [True, True, True, True], True: [True, False, True, False]}


def test_under_autocast_what_is_rounded_to_the_coarser_dtype_is_perturbed_by_its_epsilon(
    tmp_path: Path,
) -> None:
    """The first layer keeps float32, so its noise is that of float32."""

    class Mixed(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            with torch.autocast("cpu", torch.float16):
                return self.second(x).float()

    net = Mixed()
    found = []
    for perturbation in (None, Perturbation(1)):
        orders = Orders(1, ("outputs",), seed=3, perturbation=perturbation)
        (tmp_path / str(perturbation)).mkdir()
        recording = observed(tmp_path / str(perturbation), orders, lambda: train(net, 1))
        found.append({name.name: each.double() for name, each in recording.tensors.items()})
    plain, moved = found
    part = {name: float((moved[name] - of).norm() / of.norm()) for name, of in plain.items()}
    assert 0 < part["first"] < 1e-6
    assert 5e-4 < part["second"] < 2e-3


@pytest.mark.slow
def test_a_module_that_returns_what_another_one_made_is_known(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    modules = observed(tmp_path, Orders(1, ("outputs",)), lambda: train(net, 1)).modules
    assert {name: each.returns for name, each in modules.items()} == {
        "Sequential": "1",
        "0": "",
        "1": "",
    }


@pytest.mark.slow
def test_what_a_module_returns_beside_its_first_output_is_known(tmp_path: Path) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head, self.aux, self.inner = (nn.Linear(3, 3) for _ in range(3))

        def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            return self.head(x), {"aux": self.aux(x), "twice": 2 * self.inner(x)}

    def job() -> None:
        net = Two()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        main, others = net(torch.ones(2, 3))
        (main.sum() + others["aux"].sum() + others["twice"].sum()).backward()
        optimizer.step()

    found = observed(tmp_path, Orders(1, KINDS), job).modules["Two"]
    assert (found.returns, found.passes_on) == ("head", ("aux",))


@pytest.mark.slow
def test_a_module_that_keeps_its_output_for_later_calls_made_it_itself(tmp_path: Path) -> None:
    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.made = torch.ones(3)

        def forward(self) -> Tensor:
            return self.made

    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.fc = Table(), nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(x + self.table())

    net = Shifted()
    found = observed(tmp_path, Orders(1, KINDS), lambda: train(net, 1, passes=2)).modules
    assert found["table"].returns == ""


def test_parameters_that_the_optimizer_leaves_to_other_ranks_are_known(tmp_path: Path) -> None:
    """An optimizer has the update of some of its parameters made by another one, as `ZeroRedundancyOptimizer` does."""

    class Owner(torch.optim.Optimizer):
        def __init__(self, parameters: list[Tensor], inner: torch.optim.Optimizer) -> None:
            super().__init__(parameters, {})
            self.inner = inner

        def step(self, closure: None = None) -> None:
            self.inner.step()

    net = nn.Linear(3, 2)
    optimizer = Owner(list(net.parameters()), torch.optim.Adam([net.bias]))

    def job() -> None:
        net(torch.ones(2, 3)).square().mean().backward()
        optimizer.step()

    found = observed(tmp_path, Orders(1, ("states",)), job)
    assert found.elsewhere == {"weight"}
    assert {each.subject for each in found.tensors if each.kind == "states"} == {"bias"}


def scaled(scale: float, fused: bool, steps: int) -> Callable[[], None]:
    """A job whose loss is scaled; the scale halves as long as the gradients overflow."""

    def job() -> None:
        net = nn.Linear(3, 3)
        optimizer = torch.optim.Adam(net.parameters(), fused=fused)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = net(torch.full((2, 3), 1e30)).mean()
            scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()

    return job


@pytest.mark.parametrize(
    ("scale", "fused", "skipped"),
    [
        (1.0, False, set()),
        (2.0**32, False, {SkippedUpdate(1, 1), SkippedUpdate(1, 2)}),
        (1.0, True, set()),
        (2.0**32, True, {SkippedUpdate(1), SkippedUpdate(2)}),
    ],
)
def test_updates_that_a_scaler_skips_are_recorded(
    scale: float, fused: bool, skipped: set[SkippedUpdate], tmp_path: Path
) -> None:
    """A fused optimizer skips the update itself, and its step ends; without an update a step of torch goes on."""
    kinds = ("output_grads", "param_grads", "gradient_norms", "losses")
    found = observed(tmp_path, Orders(2, kinds), scaled(scale, fused, 2))
    assert found.skipped == skipped
    norms = [name for name in found.tensors if name.kind == "gradient_norms"]
    assert len(norms) == (0 if skipped and not fused else 2)  # those that an update reads


def test_what_optimizers_hold_of_a_parameter_is_recorded_under_its_name(tmp_path: Path) -> None:
    """Main parameters are copies: their gradients are those of the model's, and their numbers are in the model."""
    net = nn.Linear(3, 2).bfloat16()
    mains = [nn.Parameter(each.detach().float()) for each in net.parameters()]
    for each, main in zip(net.parameters(), mains, strict=True):
        each.main_param = main

    def job() -> None:
        optimizer = torch.optim.SGD(mains, lr=0.1)
        net(torch.ones(2, 3).bfloat16()).square().mean().backward()
        for each, main in zip(net.parameters(), mains, strict=True):
            main.grad, each.grad = each.grad.float(), None
        optimizer.step()
        for each, main in zip(net.parameters(), mains, strict=True):
            each.data.copy_(main.detach())

    found = observed(tmp_path, Orders(1, ("param_grads", "params")), job).tensors
    names = {(name.kind, name.name) for name in found}
    assert names == {(kind, of) for kind in ("param_grads", "params") for of in ("weight", "bias")}
    assert found[TensorName("param_grads", "weight", 1)].dtype == torch.float32
