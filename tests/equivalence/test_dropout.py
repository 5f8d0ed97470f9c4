"""Dropout is off on both sides, or the text says that random numbers were drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from typer.testing import CliRunner

from tests.families import family
from tspec.cli.app import app
from tspec.equivalence.observing.dropout import FUNCTIONS, without_dropout

HERE = Path(__file__).resolve().parent
RATE = 0.5


@contextmanager
def counted() -> Iterator[list[int]]:
    """Dropout is off within the block; the list has an element for each call that would have dropped."""
    calls: list[int] = []
    with without_dropout(lambda: calls.append(1)):
        yield calls


def drawn_by(function: Callable[[], Any]) -> bool:
    """True if a function draws random numbers."""
    before = torch.get_rng_state()
    function()
    return not torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("owner", "name", "training"), [(each[0], each[1], each[3]) for each in FUNCTIONS]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_functions_that_drop_pass_their_input_on(owner: Any, name: str, training: str) -> None:
    """Whatever way they are given their arguments."""
    x = torch.randn({"dropout1d": (2, 3, 4), "dropout3d": (2, 3, 4, 5, 6)}.get(name, (2, 3, 4, 5)))
    made = getattr(owner, name)(x.clone(), RATE, True)
    assert not torch.equal(made[0] if name == "native_dropout" else made, x)
    with counted() as calls:
        function = getattr(owner, name)
        for given, options in (
            ((RATE, True), {}),
            ((RATE,), {training: True}),
            ((), {"p": RATE, training: True}),
        ):
            made = function(x.clone(), *given, **options)
            assert torch.equal(made[0] if name == "native_dropout" else made, x)
        assert len(calls) == 3
        function(x.clone(), RATE, False)
        function(x.clone(), 0.0, True)
        assert len(calls) == 3


MODULES = (
    nn.Dropout(RATE), nn.Dropout1d(RATE), nn.AlphaDropout(RATE), nn.FeatureAlphaDropout(RATE),
    nn.RNN(8, 8, 2, dropout=RATE), nn.LSTM(8, 8, 2, dropout=RATE), nn.GRU(8, 8, 2, dropout=RATE),
    nn.TransformerEncoderLayer(8, 2, 8, RATE), nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 8, RATE), 1),
)  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=lambda module: type(module).__name__)
def test_modules_of_torch_draw_nothing(module: nn.Module) -> None:
    x = torch.randn(2, 3, 8)
    given = (x, x) if isinstance(module, nn.TransformerDecoder) else (x,)
    assert drawn_by(lambda: module(*given))
    with counted() as calls:
        assert not drawn_by(lambda: module(*given))
        assert calls
    assert drawn_by(lambda: module(*given))
    assert getattr(module, "dropout", RATE) is not None and module.training


@pytest.mark.parametrize("given", [(None, RATE), (None,)], ids=["by position", "by name"])
def test_attention_drops_nothing(given: tuple[Any, ...]) -> None:
    x = torch.randn(1, 2, 4, 8)
    options = {} if len(given) > 1 else {"dropout_p": RATE}

    def attend() -> None:
        functional.scaled_dot_product_attention(x, x, x, *given, **options)

    assert drawn_by(attend)
    with counted() as calls:
        assert not drawn_by(attend)
        assert calls == [1]


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent, self.drop = nn.LSTM(8, 8, 2, dropout=RATE), nn.Dropout(RATE)

    def forward(self, x: Tensor) -> Tensor:
        made, _ = self.recurrent(x)
        return functional.dropout(self.drop(made), 0.5)  # TorchScript reads no globals


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_code_that_drops_is_compiled_as_before() -> None:
    """TorchScript reads sources; what it makes of them drops, and is found by what it draws."""
    x = torch.ones(2, 3, 8)
    with counted():
        assert drawn_by(lambda: torch.jit.script(Scripted())(x))
        compiled = torch.compile(
            lambda x: functional.dropout(x, RATE) * 2, backend="eager", fullgraph=True
        )
        assert torch.equal(compiled(x), x * 2)


def equivalence(name: str, *words: str) -> tuple[int, str]:
    """The exit status, and what was printed on a wide screen."""
    options = ("--dropout", "script") if "--dropout" in words else ()
    script = (str(HERE / "dropout.py"), *(each for each in words if each != "--dropout"))
    command = ["run", str(HERE / "dropout.tspec"), "--equivalence", name, *options, "--", *script]
    ended = CliRunner().invoke(app, command, env={"COLUMNS": "300"})
    return ended.exit_code, ended.stdout + ended.stderr


OFF = "dropout is off on both sides, in Model, attention.dropout, attention.dropout1 and 4 more\n"


DROPOUTS = {
    "off": ("two_ranks_are_one", (), 0, OFF),
    "off, one rank": ("one_rank_repeats_it", (), 0, OFF),
    "the script's": (
        "two_ranks_are_one", ("--dropout",), 1, "random numbers were drawn in forward passes of "
    ),
    "the script's, one rank": ("one_rank_repeats_it", ("--dropout",), 0, "none differs"),
    "a fault": ("two_ranks_are_one", ("--fault",), 1, "first wrong: outputs head"),
}  # fmt: skip


@pytest.mark.gloo
@pytest.mark.parametrize("case", family(DROPOUTS, ("off",)))
def test_dropout_is_no_finding(case: str) -> None:
    name, words, status, said = DROPOUTS[case]
    """Two ranks draw other masks than one device does for the whole batch. Where they differ, the text says why."""
    found = equivalence(name, *words)
    assert found[0] == status, found[1]
    assert said in found[1]
    assert ("dropout is off" in found[1]) == ("--dropout" not in words)
    assert ("random numbers were drawn" in found[1]) == (words == ("--dropout",) and status == 1)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_dropout_of_megatron_is_no_finding() -> None:
    """Its hidden dropout is a function, its attention's a module under a generator of its own."""
    job = "tp={tp},pp={pp},dp={dp},sp={sp},dropout,passes=2,steps=1"
    script = str(HERE.parent / "megatron/train.py")
    of = ["--equivalence", "sequence_parallel", "--", script, job]
    found = CliRunner().invoke(
        app, ["run", str(HERE / "megatron.tspec"), *of], env={"COLUMNS": "300"}
    )
    assert (found.exit_code, "none differs" in found.stdout) == (0, True), found.output
    assert "dropout is off on both sides, in decoder.layers.0..3, " in found.stdout
