"""The tensors of a pipeline's stages, in the order of one rank, and stages that do not fit the layout."""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed.pipelining.stage import _PipelineStageBase
from typer.testing import CliRunner

from tests.equivalence.trials import trial_of
from tspec.cli.app import app
from tspec.equivalence.check import compare
from tspec.equivalence.child import Given
from tspec.equivalence.launch import Failed
from tspec.equivalence.observing.orders import Orders, Perturbation
from tspec.equivalence.recording import ModuleCall, Recording, TensorName
from tspec.equivalence.runs import ReferenceRecordings
from tspec.equivalence.sides import Trial
from tspec.equivalence.stages import first_stage, joined, whole_models
from tspec.resolve import load_text
from tspec.targets.torch.pipeline_stages import PipelineStageAdapter

HERE = Path(__file__).resolve().parent
TEXT = """edition 2026

module example

mesh ranks {
  order: pp
  pp: 2
}

dims ranks {
  hidden: 4
}

layout deep on ranks {
  param "*": [hidden]
  output "*": [batch, hidden]
  input "*": [batch, hidden]

  stage 0: "a"
  stage 1: "b", "Model"
}

equivalence e {
  layout deep
  reference {}
  candidate { pp: 1 }
  run 1 step
  compare params
  within 0
}
"""


INTERLEAVED = TEXT.replace(
    '  stage 0: "a"\n  stage 1: "b", "Model"\n',
    '  stage 0 chunk 0: "a"\n  stage 1 chunk 0: "b"\n  stage 0 chunk 1: "c"\n  stage 1 chunk 1: "Model"\n',
)


def trial(text: str = TEXT) -> Trial:
    program = load_text(text).program
    assert program is not None
    return trial_of(program.equivalences[0], ("train.py",))


def stage(module: str, first: float) -> Recording:
    """What a rank records that has one module, in its own order."""
    full = torch.full((2, 4), first)
    names = [
        TensorName("params", f"{module}.weight", 0),
        TensorName("inputs", module, 1, 1),
        TensorName("outputs", module, 1, 1),
        TensorName("outputs", "Model", 1, 1),
        TensorName("output_grads", module, 1, 1),
        TensorName("input_grads", module, 1, 1),
        TensorName("param_grads", f"{module}.weight", 1),
        TensorName("params", f"{module}.weight", 1),
    ]
    tensors = {name: full[0] if name.kind in ("param_grads", "params") else full for name in names}
    return Recording(tensors, {f"{module}.weight": first})


def test_stages_are_joined_forward_and_then_back() -> None:
    last = stage("b", 2.0)
    loss = TensorName("losses", "loss", 1, 1)
    last = replace(last, tensors={**last.tensors, loss: torch.tensor(3.0)})
    found = joined(trial(), [stage("a", 1.0), last])
    assert [f"{each.kind} {each.name}" for each in found.tensors] == [
        *("params a.weight", "params b.weight"),
        *("inputs a", "outputs a", "inputs b", "outputs b", "outputs Model", "losses loss"),
        *("output_grads b", "output_grads a", "input_grads a"),
        *("param_grads a.weight", "param_grads b.weight", "params a.weight", "params b.weight"),
    ]
    assert found.tensors[TensorName("outputs", "Model", 1, 1)][0, 0] == 2
    assert found.filled == {"a.weight": 1.0, "b.weight": 2.0}


@pytest.mark.parametrize(("module", "compared"), [("b", True), ("Model", False)])
def test_what_a_stage_is_sent_is_no_input_of_the_whole_model(module: str, compared: bool) -> None:
    """The layout has the model on the last stage, for its output. That of a module within is compared."""
    pipeline = replace(
        trial(
            TEXT.replace("candidate { pp: 1 }", "candidate { pp: 2 }").replace(
                "reference {}", "reference { pp: 1 }"
            )
        ),
        kinds=("inputs",),
    )
    name = TensorName("inputs", module, 1, 1)
    calls = {"Model": ModuleCall("Model", "", "", ""), "b": ModuleCall("b", "Model", "", "")}
    whole = Recording({name: torch.ones(2, 4)}, {}, calls)
    other = Recording({name: torch.ones(2, 3)}, {}, calls)
    found = compare(pipeline, ReferenceRecordings(whole, ()), (Recording({}, {}, calls), other))
    assert [each.fault.kind for each in found.faults] == ["shape"] * compared


def test_what_a_later_chunk_of_the_first_stage_was_sent_is_no_input_of_the_run() -> None:
    """Interleaved stages: rank 0 has the first chunk and the third."""
    model = TensorName("outputs", "Model", 1, 1)
    of_both = {**stage("a", 1.0).tensors, **stage("c", 3.0).tensors}
    first = replace(
        stage("a", 1.0), tensors={name: of_both[name] for name in of_both if name != model}
    )
    found = joined(trial(INTERLEAVED), [first, stage("b", 2.0)]).tensors
    assert [f"{each.kind} {each.name}" for each in found if each.kind == "input_grads"] == [
        "input_grads a"
    ]
    outputs = [each.name for each in found if each.kind == "outputs"]
    assert outputs == ["a", "b", "c", "Model"]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("equivalence", "fault", "said"),
    [
        ("interleaved_stages_are_one_rank", "", "672 tensors compared, none differs"),
        ("interleaved_stages_are_one_rank", "stale", "inputs blocks.1, step 1, micro-batch 2"),
        ("one_rank_is_interleaved_stages", "", "672 tensors compared, none differs"),
        ("one_rank_is_interleaved_stages", "stale", "inputs blocks.1, step 1, micro-batch 2"),
    ],
)
def test_stages_that_are_models_of_their_own_on_one_rank_are_parts_of_one(
    equivalence: str, fault: str, said: str
) -> None:
    """On the side of the candidate, and on that of the reference."""
    script = [str(HERE / "pipelined.py"), "--schedule", "Interleaved1F1B", "--fault", fault]
    named = ["--equivalence", equivalence]
    found = CliRunner().invoke(
        app, ["run", str(HERE / "pipelined.tspec"), *named, "--", *script], env={"COLUMNS": "200"}
    )
    assert found.exit_code == bool(fault), found.output
    assert (f"first wrong: {said}" if fault else said) in found.output


def test_several_models_of_a_rank_that_are_no_stages_are_named() -> None:
    calls = dict.fromkeys(("a", "Model", "Model#2", "Model#2.b"), ModuleCall("Model", "", "", ""))
    with pytest.raises(Failed, match="rank 0 has several models, `Model` and `Model#2`, and `b`"):
        whole_models(trial().layout, (Recording({}, {}, calls),))


def test_names_of_stages_are_those_of_one_device() -> None:
    class Stage(_PipelineStageBase):
        def __init__(self, model: nn.Module, number: int) -> None:
            self.submod, self.stage_index, self.num_stages = model, number, 4

    Stage.__abstractmethods__ = frozenset()
    models = [nn.Sequential(nn.Linear(1, 1)) for _ in range(3)]
    gone = weakref.proxy(nn.Linear(1, 1))  # the collector knows it as long as the name is held
    naming = PipelineStageAdapter().naming
    stages = [Stage(models[0], 1)]
    assert naming(models[0], print) is None  # the only one of this rank
    stages.append(Stage(models[1], 3))
    names = [naming(each, print) for each in models]
    assert [each and (each(""), each("0.weight")) for each in names] == [
        ("Sequential.stages.1", "0.weight"),
        ("Sequential", "0.weight"),
        None,
    ]
    assert type(gone) is weakref.CallableProxyType


def test_a_parameter_on_another_stage_than_the_layout_says_is_an_error() -> None:
    with pytest.raises(Failed, match=r"rank 1 has params a\.weight, before step 1"):
        joined(trial(), [stage("a", 1.0), stage("a", 2.0)])


def test_only_the_first_stage_perturbs_what_it_is_given(tmp_path: Path) -> None:
    assert first_stage(trial()) == (0,)
    orders = Orders(1, ("params",), perturbation=Perturbation(1))
    given = Given(("train.py",), orders, inputs=(0,))
    given.write(tmp_path / "given.json")
    found = [Given.read(tmp_path / "given.json", rank)[1].perturbation for rank in (0, 1)]
    assert found == [Perturbation(1), None]


def test_runs_with_other_orders_are_told_apart(tmp_path: Path) -> None:
    given = Given(("train.py",), Orders(1, ("params",), seed=3))
    given.write(tmp_path / "given.json")
    assert replace(given, command=("other.py",)).has_orders_of(tmp_path / "given.json")
    assert not replace(given, orders=Orders(2, ("params",), 3)).has_orders_of(
        tmp_path / "given.json"
    )
