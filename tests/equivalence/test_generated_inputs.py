"""Inputs of the model that an equivalence generates: each rank has its shard, whatever its loader gives."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

from tests.equivalence.test_observer import observed
from tests.equivalence.test_sides import TEXT, trial
from tests.families import family
from tspec.cli.app import app
from tspec.equivalence.child import Given
from tspec.equivalence.cut import Cut, whole
from tspec.equivalence.generator import InputRange, numbers
from tspec.equivalence.observing.orders import Orders
from tspec.equivalence.recording import TensorName

HERE = Path(__file__).resolve().parent
TOKENS, NOISE = InputRange(0, 50, whole=True), InputRange(-1, 1)
MODEL = TensorName("inputs", "Model", 1, 1)


def of_call(name: str, step: int = 1, microbatch: int = 1) -> TensorName:
    return TensorName("inputs", name, step, microbatch)


def test_numbers_are_in_their_range_and_those_of_a_shard_are_those_of_the_whole() -> None:
    name = ("Model", "1", "1", "0")
    tokens = numbers(7, name, whole((40, 25)), TOKENS)
    assert set(tokens.flatten().tolist()) == set(range(50))
    noise = numbers(7, name, whole((40, 25)), NOISE)
    assert -1 <= noise.min() < -0.9 and 0.9 < noise.max() < 1
    assert abs(float(noise.mean())) < 0.1
    right = Cut((40, 25), (((0, 40, 0, 1),), ((20, 5, 0, 1),)))
    assert torch.equal(numbers(7, name, right, TOKENS), tokens[:, 20:])
    for other in (("Model", "2", "1", "0"), ("Model", "1", "2", "0"), ("Other", "1", "1", "0")):
        assert not torch.equal(numbers(7, other, whole((40, 25)), TOKENS), tokens)


class Model(nn.Module):
    """Notes what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 4)
        self.given: list[tuple[Tensor, Tensor]] = []

    def forward(self, tokens: Tensor, noise: Tensor) -> Tensor:
        self.given.append((tokens.clone(), noise.clone()))
        return self.embed(tokens) + noise


def job(model: Model, text: Tensor, passes: int = 1) -> None:
    """Tokens and labels share memory with the data set."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        for _ in range(passes):
            out = model(text[:, :-1], torch.zeros(2, 3, 4))
            nn.functional.cross_entropy(out.flatten(0, 1), text[:, 1:].flatten() % 4).backward()
        optimizer.step()


ALL = {
    "Model": TOKENS,
    "Model[noise]": NOISE,
    "cross_entropy[target]": InputRange(0, 4, whole=True),
}


def test_inputs_and_targets_are_generated_for_each_call(tmp_path: Path) -> None:
    model, text = Model(), torch.zeros(2, 4, dtype=torch.int64)
    orders = Orders(2, ("inputs",), 7, inputs=ALL)
    found = observed(tmp_path, orders, lambda: job(model, text, passes=2))
    times = [(step, microbatch) for step in (1, 2) for microbatch in (1, 2)]
    shapes = {"Model": (2, 3), "Model[noise]": (2, 3, 4), "cross_entropy[target]": (6,)}
    assert found.generated == {
        of_call(name, *at): shape for at in times for name, shape in shapes.items()
    }
    for (tokens, noise), (step, microbatch) in zip(model.given, times, strict=True):
        place = (str(step), str(microbatch), "0")
        expected = numbers(7, ("Model", *place), whole((2, 3)), TOKENS).long()
        assert torch.equal(tokens, expected)
        expected = numbers(7, ("Model[noise]", *place), whole((2, 3, 4)), NOISE).float()
        assert torch.equal(noise, expected)
        assert torch.equal(found.tensors[of_call("Model", step, microbatch)], tokens)
    targets = [found.tensors[of_call("cross_entropy[target]", *at)] for at in times]
    assert len({tuple(each.tolist()) for each in targets}) == 4
    assert not text.any()  # the data set keeps its own


def test_a_rank_is_given_its_shard_of_the_batch(tmp_path: Path) -> None:
    model, text = Model(), torch.zeros(2, 4, dtype=torch.int64)
    lower = Cut((4, 3), (((2, 2, 0, 1),), ((0, 3, 0, 1),)))
    other = Cut((4, 3, 4), (((0, 4, 0, 1),), ((0, 3, 0, 1),), ((0, 4, 0, 1),)))
    cuts = {MODEL: lower, of_call("Model[noise]"): other}
    orders = Orders(1, ("inputs",), 7, inputs=ALL, input_cuts=cuts)
    with pytest.raises(SystemExit):
        observed(tmp_path, orders, lambda: job(model, text))
    tokens, noise = model.given[0]
    expected = numbers(7, ("Model", "1", "1", "0"), whole((4, 3)), TOKENS).long()
    assert torch.equal(tokens, expected[2:])
    assert not noise.any()  # its shape is not that of the shard: the comparison tells


def test_numbers_of_another_kind_and_computed_tensors_are_left_alone(tmp_path: Path) -> None:
    model, text = Model(), torch.zeros(2, 4, dtype=torch.int64)
    orders = Orders(1, ("inputs",), 7, inputs={"Model": NOISE, "Model[noise]": TOKENS})

    def computed() -> None:
        noise = torch.zeros(2, 3, 4, requires_grad=True)
        model(text[:, :-1], noise * 1).sum().backward()

    of_noise = Orders(1, ("inputs",), 7, inputs={"Model[noise]": NOISE})
    assert observed(tmp_path, of_noise, computed).generated == {}
    with pytest.raises(SystemExit):
        observed(tmp_path, orders, lambda: job(model, text))
    assert not any(tensor.any() for given in model.given for tensor in given[1:])


def test_orders_of_inputs_are_written_and_read(tmp_path: Path) -> None:
    orders = Orders(1, ("inputs",), 7, inputs=ALL)
    cut = whole((4, 3))
    Given(("job.py",), orders, input_cuts=({}, {MODEL: cut})).write(tmp_path / "given.json")
    read = Given.read(tmp_path / "given.json", 1)[1]
    assert (read.inputs, read.input_cuts) == (ALL, {MODEL: cut})
    given = Given(("job.py",), orders)
    assert given.has_orders_of(tmp_path / "given.json")
    other = Given(("job.py",), Orders(1, ("inputs",), 7, inputs={"Model": NOISE}))
    assert not other.has_orders_of(tmp_path / "given.json")


def test_generated_inputs_are_recorded_and_compared_also_if_inputs_are_not() -> None:
    place = '  param "*": [hidden / tp]\n}'
    text = TEXT.replace(place, f'{place[:-1]}  input "Model": [batch, seq] replicated tp\n}}')
    text = text.replace("(seed: 5)\n", '(seed: 5)\n  input "Model" from below(hidden)\n')
    found = trial(text)
    assert found.inputs == {"Model": InputRange(0, 8, whole=True)}
    assert found.recorded == ("params", "losses", "param_grads", "inputs")
    assert found.compares(MODEL) and not found.compares(of_call("fc1"))


def run(equivalence: str, *arguments: str) -> str:
    """What the command prints."""
    spec, script = (str(HERE / f"own_batches.{end}") for end in ("tspec", "py"))
    command = ["run", spec, "--equivalence", equivalence, "--", script, *arguments]
    found = CliRunner().invoke(app, command)
    return " ".join(found.output.split())


@pytest.mark.gloo
@pytest.mark.parametrize(
    "asked",
    family(
        {
            ("two_ranks_are_one",): "44 tensors compared, none differs",
            ("two_ranks_are_one", "--fault"): "first wrong: param_grads embed.weight, step 1",
            ("two_ranks_are_one", "--uncut"): "the layout says [4, 5]",
            ("own_batches_differ",): "first wrong: inputs Model, step 1",
            ("of_another_kind",): "was given a tensor of floating numbers under that name",
        }.items(),
        {"two_ranks_are_one --fault"},
        name=lambda asked: " ".join(asked[0]),
    ),
)
def test_ranks_that_draw_their_own_batches_are_one_rank_and_a_fault_is_found(
    asked: tuple[tuple[str, ...], str],
) -> None:
    words, said = asked
    assert said in run(*words)
