"""Whose code made the first wrong tensor of a plain comparison, and on which line of the script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.equivalence.trials import trial_of
from tspec.equivalence.blame import RunCalls, blamed, calls_of, unjudged_inputs
from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.merge import MergeFault
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.recording import ModuleCall, ModuleInput, Recording, TensorName
from tspec.resolve import load


def given(name: str, takes: tuple[str, str] | tuple[()] = ()) -> tuple[ModuleInput, ...]:
    return (ModuleInput(name, takes),)


MODULES = {
    "Net": ModuleCall("Net", "", "model.py:3", "train.py:9", given("Net")),
    "norm": ModuleCall(
        "Norm", "Net", "model.py:20", "model.py:5", given("norm", ("inputs", "Net"))
    ),
    "head": ModuleCall(
        "Head", "Net", "model.py:30", "model.py:6", given("head", ("outputs", "norm"))
    ),
    "head.fc": ModuleCall("Linear", "head", "torch.py:9", "model.py:31", given("head.fc")),
}
LINES = {"losses": "train.py:10", "gradient_norms": "train.py:11", "params": "train.py:12"}
ALL = ("outputs", "losses", "output_grads", "param_grads", "params", "states")


def outcome(*wrong: tuple[str, str], right: tuple[tuple[str, str], ...] = ()) -> Outcome:
    said = [*((*each, 2.0) for each in wrong), *((*each, 0.5) for each in right)]
    return Outcome(
        tuple(
            TensorComparison(TensorName(kind, name, 1), order, times, 1.0, 1e-7)
            for order, (kind, name, times) in enumerate(said)
        ),
        (),
        (),
        calls=RunCalls(MODULES, tuple(MODULES), LINES),
    )


@pytest.mark.parametrize(
    ("kind", "name", "module", "part", "defined", "lines"),
    [
        ("outputs", "norm", "norm", "forward pass", "model.py:20", ()),
        ("inputs", "head.fc", "head", "what it hands to head.fc", "model.py:30", ("model.py:31",)),
        ("inputs", "Net", "", "what it hands to Net", None, ("train.py:9",)),
        ("losses", "loss", "", "loss", None, ("train.py:10",)),
        ("output_grads", "Net", "", "backward pass", None, ("train.py:10",)),
        ("output_grads", "norm", "head", "backward pass", "model.py:30", ()),
        ("param_grads", "norm.weight", "norm", "gradients of its parameters", "model.py:20", ()),
        ("gradient_norms", "norm", "", "norm of the gradients", None, ("train.py:11",)),
        ("params", "head.b", "head", "update of its parameters", "model.py:30", ("train.py:12",)),
    ],
)
def test_the_first_wrong_tensor_has_code_that_made_it(
    kind: str, name: str, module: str, part: str, defined: str | None, lines: tuple[str, ...]
) -> None:
    found = outcome((kind, name), right=tuple((each, "right") for each in (*ALL, "inputs"))).blame
    assert found is not None
    assert (found.module, found.part, found.lines) == (module, part, lines)
    assert (found.call and found.call.defined) == defined


def test_a_gradient_is_also_of_modules_to_which_the_reference_alone_gave_the_tensor() -> None:
    other = ModuleCall(
        "Linear", "Net", "torch.py:9", "model.py:7", given("other", ("outputs", "norm"))
    )
    detached = {**MODULES, "other": replace(other, inputs=given("other"))}
    name = TensorName("output_grads", "norm", 1)
    for reference, module, lines in (
        ({**MODULES, "other": other}, "head, other", ("model.py:6", "model.py:7")),
        (MODULES, "head", ()),
    ):
        found = blamed(name, RunCalls(detached, tuple(detached), LINES, reference), frozenset())
        assert (found.module, found.lines) == (module, lines)


def test_a_module_that_gives_its_input_back_has_no_backward_pass() -> None:
    identity = ModuleCall("Identity", "Net", "torch.py:1", "model.py:4", given("same"))
    calls = {**MODULES, "same": identity}
    calls["head"] = replace(MODULES["head"], inputs=given("head", ("outputs", "same")))
    name = TensorName("input_grads", "same", 1)
    for gives_back, module in (("", "same"), ("same", "head")):
        calls["same"] = replace(identity, gives_back=gives_back)
        found = blamed(name, RunCalls(calls, tuple(calls), LINES, calls), frozenset())
        assert (found.module, found.part) == (module, "backward pass")


def test_a_module_that_is_called_again_was_called_from_another_line() -> None:
    again = replace(MODULES["head.fc"], again=("model.py:32",))
    calls = RunCalls({**MODULES, "head.fc": again}, tuple(MODULES), LINES)
    for number, line in ((0, "model.py:31"), (1, "model.py:32"), (2, "")):
        output, given = (
            blamed(TensorName(kind, "head.fc", 1, 1, number), calls, frozenset())
            for kind in ("outputs", "inputs")
        )
        assert output.call is not None and output.call.called == line
        assert given.lines == ((line,) if line else ())


def test_what_comes_first_is_to_blame_also_if_only_its_pieces_do_not_fit() -> None:
    found = outcome(("outputs", "head"))
    fault = Fault(TensorName("outputs", "norm", 1), -1, MergeFault("replicas", "they differ"))
    misplaced = replace(fault, fault=MergeFault("layout", "the layout says [4]"))
    for faults, expected in (((fault,), "norm"), ((misplaced,), "head")):
        blame = replace(found, faults=faults).blame
        assert blame is not None and blame.module == expected
    assert outcome(right=(("outputs", "norm"),)).blame is None


def test_nobody_is_blamed_where_that_from_which_it_is_made_was_not_compared() -> None:
    for kind, name in (("param_grads", "norm.weight"), ("params", "norm.weight"), ("losses", "l")):
        assert outcome((kind, name)).blame is None


def test_gradients_that_are_all_wrong_are_of_no_single_module() -> None:
    names = (("param_grads", "norm.weight"), ("param_grads", "head.fc.weight"))
    assert outcome(*names).blame is None
    found = outcome(*names, right=(("output_grads", "head"),)).blame
    assert found is not None
    assert (found.module, found.lines) == ("all parameters", ("train.py:10",))


def test_gradients_of_a_later_step_do_not_make_all_of_the_first_wrong() -> None:
    one, other = ("param_grads", "norm.weight"), ("param_grads", "head.fc.weight")
    found = outcome(one, other, right=(other, ("output_grads", "head")))
    later = tuple(
        replace(each, name=replace(each.name, step=2))
        if each.name.name == other[1] and each.differs
        else each
        for each in found.comparisons
    )
    blame = replace(found, comparisons=later).blame
    assert blame is not None and blame.module == "norm"


def test_a_module_whose_input_was_not_compared_may_have_been_given_what_is_wrong() -> None:
    maybe = "forward pass, or what it is given"
    for right, part in (((), maybe), ((("outputs", "norm"),), "forward pass")):
        found = outcome(("outputs", "head"), right=right).blame
        assert found is not None and found.part == part
    of_batch = outcome(("outputs", "norm")).blame  # it has the model's own input
    assert of_batch is not None and of_batch.part == "forward pass"


CROSS = {
    "Net": MODULES["Net"],
    "encoder": ModuleCall("Encoder", "Net", "model.py:20", "model.py:5", given("encoder")),
    "layer": ModuleCall(
        *("Layer", "Net", "model.py:40", "model.py:6"),
        (ModuleInput("layer"), ModuleInput("layer[memory]", ("outputs", "encoder"))),
    ),
    "layer.cross": ModuleCall(
        *("Attention", "layer", "model.py:50", "model.py:41"),
        (ModuleInput("layer.cross"), ModuleInput("layer.cross[kv.0]", ("inputs", "layer[memory]"))),
    ),
    "layer.cross.k": ModuleCall(
        *("Linear", "layer.cross", "torch.py:9", "model.py:51"),
        given("layer.cross.k", ("inputs", "layer.cross[kv.0]")),
    ),
}
SCALED = {
    **CROSS,
    "layer": replace(CROSS["layer"], inputs=(*given("layer"), ModuleInput("layer[memory]"))),
}
"""The same, where the layer is given another tensor than the encoder's output."""


def test_an_input_that_is_handed_on_as_it_is_is_of_who_made_it() -> None:
    """Also if the layout has no place for further inputs."""
    name = TensorName("inputs", "layer.cross.k", 1)
    calls = RunCalls(CROSS, tuple(CROSS), LINES, CROSS)
    for judged, module, part, line in (
        (frozenset[tuple[str, str]](), "Net", "layer[memory]", "model.py:6"),
        ({("inputs", "layer[memory]")}, "layer", "layer.cross[kv.0]", "model.py:41"),
        ({("inputs", "layer.cross[kv.0]")}, "layer.cross", "layer.cross.k", "model.py:51"),
    ):
        found = blamed(name, calls, judged)
        assert (found.module, found.part) == (module, f"what it hands to {part}")
        assert found.lines == (line,)


def test_an_input_is_of_the_module_whose_output_it_is_where_that_alone_was_not_compared() -> None:
    """As the table of rotary positions, which each layer is given."""
    name = TensorName("inputs", "layer[memory]", 1)
    table = replace(CROSS["encoder"], inputs=())
    unlike = {**CROSS, "layer": other("layer", ("outputs", "norm"))}
    wrapped = {
        "outer": replace(table, returns="encoder"),
        "encoder": replace(table, returns="outer"),  # of the call before: it keeps its tensor
        "layer": other("layer", ("outputs", "outer")),
    }
    for modules, reference, judged, found in (
        ({"encoder": table}, {}, frozenset[tuple[str, str]](), ("encoder", "forward pass")),
        (wrapped, wrapped, frozenset[tuple[str, str]](), ("encoder", "forward pass")),
        ({"encoder": table}, {}, {("outputs", "encoder")}, None),
        ({"encoder": table}, unlike, frozenset[tuple[str, str]](), None),
        ({}, {}, frozenset[tuple[str, str]](), None),  # what it is given was not compared either
    ):
        both = {**CROSS, **modules}
        calls = RunCalls(both, tuple(both), LINES, {**both, **reference})
        of = blamed(name, calls, judged)
        assert (of.module, of.part) == (found or ("Net", "what it hands to layer[memory]"))


def test_one_that_hands_on_another_input_than_the_reference_is_to_blame() -> None:
    reference = {
        **CROSS,
        "layer.cross.k": replace(CROSS["layer.cross.k"], inputs=given("layer.cross.k")),
    }
    calls = RunCalls(CROSS, tuple(CROSS), LINES, reference)
    found = blamed(TensorName("inputs", "layer.cross.k", 1), calls, frozenset())
    assert (found.module, found.part) == ("layer.cross", "what it hands to layer.cross.k")


def test_a_gradient_comes_from_modules_that_took_the_tensor_as_a_further_input() -> None:
    calls = RunCalls(CROSS, tuple(CROSS), LINES, CROSS)
    found = blamed(TensorName("output_grads", "encoder", 1), calls, frozenset())
    assert (found.module, found.part) == ("layer.cross.k", "backward pass")


def test_the_gradient_of_what_a_parent_returns_beside_its_first_output_is_of_its_caller() -> None:
    """As a model's second loss is made from its second output."""
    name = TensorName("output_grads", "aux", 1)
    aux = ModuleCall("Linear", "Net", "torch.py:9", "model.py:7", given("aux"))
    for passes_on, module, line in (((), "Net", ()), (("aux",), "", ("train.py:10",))):
        net = replace(MODULES["Net"], passes_on=passes_on)
        modules = {**MODULES, "aux": aux, "Net": net}
        found = blamed(name, RunCalls(modules, tuple(modules), LINES, modules), frozenset())
        assert (found.module, found.part, found.lines) == (module, "backward pass", line)


def test_a_further_input_has_to_be_judged_too() -> None:
    right = frozenset((("inputs", "layer"), ("inputs", "layer.cross"), ("outputs", "encoder")))
    for modules, reference, expected in (
        (CROSS, CROSS, []),
        (SCALED, CROSS, ["layer[memory]"]),
        # It is a tensor that is right, but not that of the reference.
        (CROSS, {**CROSS, "layer": other("layer", ("outputs", "norm"))}, ["layer[memory]"]),
    ):
        calls = RunCalls(modules, tuple(modules), LINES, reference)
        assert list(unjudged_inputs("layer", calls, right)) == expected
        within = ["layer.cross[kv.0]"] if expected else []
        assert list(unjudged_inputs("layer.cross", calls, right)) == within
        known = right | {("inputs", "layer[memory]")}
        assert list(unjudged_inputs("layer.cross", calls, known)) == []


def other(name: str, takes: tuple[str, str]) -> ModuleCall:
    return replace(CROSS[name], inputs=(*given(name), ModuleInput(f"{name}[memory]", takes)))


def test_modules_of_two_stages_share_what_the_layout_ties() -> None:
    program = load([Path(__file__).parent / "tied.tspec"]).program
    assert program is not None
    trial = trial_of(program.equivalences[0], ("train.py",))
    stages = [
        Recording({}, {}, {name: ModuleCall("Linear", "Stage", "", "", ())})
        for name in ("embed", "head")
    ]
    shared = {
        name: call.shares
        for name, call in calls_of(trial, Recording({}, {}), stages).modules.items()
    }
    assert shared == {"embed": ("head.weight",), "head": ("embed.weight",)}
