"""Who is to blame for a tensor that is wrong though all that it was made from is right."""

from __future__ import annotations

from dataclasses import replace

from tspec.equivalence.blame import EVERYWHERE, Blame, RunCalls
from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.evidence import Evidence
from tspec.equivalence.gradient_norms import NormComparison
from tspec.equivalence.localize import suspects
from tspec.equivalence.merge import MergeFault
from tspec.equivalence.missing_passes import MissingPass, StagePass
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.recording import ModuleCall, ModuleInput, TensorName


def module(parent: str, *inputs: tuple[str, tuple[str, str] | tuple[()]]) -> ModuleCall:
    given = tuple(ModuleInput(name, takes) for name, takes in inputs)
    return ModuleCall("Linear", parent, "model.py:3", "model.py:9", given)


MODULES = {
    "Net": module("", ("Net", ())),
    "norm": module("Net", ("norm", ("inputs", "Net"))),
    "attention": module("Net", ("attention", ("outputs", "norm"))),
    "attention.qkv": module("attention", ("attention.qkv", ("inputs", "attention"))),
    "attention.proj": module("attention", ("attention.proj", ())),
}


GOOD = (("param_grads", "norm.weight"),)


def outcome(*wrong: tuple[str, str, float], right: tuple[tuple[str, str], ...] = ()) -> Outcome:
    said = [*wrong, *((kind, name, 0.5) for kind, name in right)]
    return Outcome(
        tuple(
            TensorComparison(
                TensorName(kind, name, 1), order, times, 1.0, 1e-7, Evidence("wrong scale", "2 x")
            )
            for order, (kind, name, times) in enumerate(said)
        ),
        (),
        (),
        calls=called(MODULES),
    )


def called(modules: dict[str, ModuleCall], *seen: str) -> RunCalls:
    return RunCalls(modules, seen or tuple(modules))


def blamed(found: Outcome) -> list[tuple[str, str, float]]:
    return [(each.module, each.part, each.times) for each in suspects(found)]


def test_an_output_is_its_modules_and_an_input_that_of_the_module_that_hands_it_on() -> None:
    found = outcome(("outputs", "norm", 2), ("inputs", "attention.proj", 9), ("inputs", "Net", 3))
    assert blamed(found) == [
        ("attention", "what it hands to attention.proj", 9),
        ("", "what it hands to Net", 3),
        ("norm", "forward pass", 2),
    ]


def test_what_a_compiled_module_has_in_it_is_its_own() -> None:
    found = outcome(
        ("param_grads", "attention.qkv.weight", 4), ("param_grads", "head", 3), right=GOOD
    )
    blocks, whole = ("Net", "attention"), ("Net",)
    part = "gradients of its parameters"
    assert [
        (each.module, each.part)
        for each in suspects(replace(found, calls=called(MODULES, *blocks)))
    ] == [
        ("attention", part),
        ("Net", part),
    ]
    assert [
        (each.module, each.part) for each in suspects(replace(found, calls=called(MODULES, *whole)))
    ] == [("Net", part)]


def test_a_gradient_within_a_module_whose_pass_is_wrong_is_of_that_pass() -> None:
    """As those of experts: the layout has no place for what they are given."""
    gradient = ("param_grads", "attention.qkv.weight", 4)
    for also, expected in (
        ((), ["attention.qkv"]),
        ((("outputs", "attention", 3),), ["attention"]),
        ((("outputs", "norm", 3),), ["attention.qkv", "norm"]),
        (  # of its own output the gradient was compared
            (("outputs", "attention", 3), ("output_grads", "attention.qkv", 2)),
            ["attention.qkv", "attention"],
        ),
    ):
        found = outcome(*also, gradient, right=(*GOOD, ("output_grads", "attention")))
        assert [module for module, _, _ in blamed(found)] == expected


def test_what_a_wrong_gradient_makes_of_a_later_step_is_no_second_fault() -> None:
    """The parameter that it moved may be within its tolerance."""
    found = outcome(("param_grads", "norm.weight", 4), right=(("param_grads", "head"),))
    later = replace(found.comparisons[0], name=TensorName("outputs", "norm", 2, 1), order=5)
    found = replace(found, comparisons=(*found.comparisons, later))
    assert blamed(found) == [("norm", "gradients of its parameters", 4)]


def test_a_gradient_is_of_the_innermost_module_that_took_the_tensor() -> None:
    found = outcome(("output_grads", "norm", 2), ("output_grads", "attention.qkv", 3))
    assert blamed(found) == [
        ("attention", "backward pass", 3),  # it cuts what `qkv` made, and hands on the shards
        ("attention.qkv", "backward pass", 2),
    ]


def test_a_gradient_is_of_the_module_around_if_that_is_wrong_by_its_own_code() -> None:
    """An adapter around a layer uses what it hands on to the layer, with weights of its own."""
    gradient = ("output_grads", "norm", 3)
    adapter, layer = ("attention", "attention.qkv")
    for also, expected in (
        ((), [layer]),
        ((("outputs", "attention", 9),), [adapter]),
        ((("param_grads", "attention.low", 9),), [adapter]),
        ((("param_grads", "attention.qkv.weight", 9),), [layer]),
    ):
        found = outcome(*also, gradient, right=GOOD)
        assert [module for module, _, _ in blamed(found)] == expected
    before = outcome(("params", "attention.low", 9), right=(*GOOD, ("params", "norm.weight")))
    later = replace(
        before.comparisons[0], name=TensorName("output_grads", "norm", 3, 1), order=9, error=3
    )
    found = replace(before, comparisons=(*before.comparisons, later))
    assert blamed(found) == [("attention", "update of its parameters", 9)]


def test_a_gradient_comes_through_a_parent_that_was_not_judged() -> None:
    within = {**MODULES, "norm.inner": module("norm")}
    for right, expected in (((), "attention"), ((("output_grads", "norm"),), "norm")):
        found = outcome(("output_grads", "norm.inner", 2), right=right)
        [suspect] = suspects(replace(found, calls=called(within)))
        assert suspect.module.partition(".")[0] == expected


def test_the_gradient_of_what_a_parent_returns_as_it_is_came_to_the_parent() -> None:
    found = outcome(("output_grads", "attention.proj", 2), right=(("output_grads", "attention"),))
    for returns, expected in (("", "attention"), ("attention.proj", "Net")):
        within = {**MODULES, "attention": replace(MODULES["attention"], returns=returns)}
        [suspect] = suspects(replace(found, calls=called(within)))
        assert (suspect.module, suspect.part) == (expected, "backward pass")


def test_a_parameter_that_a_wrong_gradient_moved_is_no_second_fault() -> None:
    found = outcome(
        ("param_grads", "norm.weight", 2),
        ("params", "norm.weight", 9),
        ("params", "norm.bias", 3),
        right=(("param_grads", "norm.bias"),),
    )
    assert blamed(found) == [
        ("norm", "gradients of its parameters, update of its parameters", 3),
    ]


def test_gradients_that_are_all_wrong_are_one_fault() -> None:
    names = ("norm.weight", "attention.qkv.weight")
    found = outcome(*(("param_grads", name, 2.0) for name in names))
    assert blamed(found) == [(EVERYWHERE, "gradients", 2)]
    [suspect] = suspects(found)
    assert suspect.evidence == Evidence("wrong scale", "2 x")


def test_updates_that_are_all_wrong_are_one_fault() -> None:
    names = ("norm.weight", "attention.qkv.weight")
    right = tuple(("param_grads", name) for name in names)
    found = outcome(*(("params", name, 2.0) for name in names), right=right)
    assert blamed(found) == [(EVERYWHERE, "update", 2)]
    [one, _] = names
    found = outcome(("params", one, 2.0), right=(*right, ("params", "attention.qkv.weight")))
    assert blamed(found) == [("norm", "update of its parameters", 2)]


def test_gradients_that_are_round_off_alone_are_right_by_chance() -> None:
    """As that of a convolution's bias before a batch norm: nothing shows in it, nor in its update."""
    names = ("norm.weight", "attention.qkv.weight")
    for kind, part in (("param_grads", "gradients"), ("params", "update")):
        right = [("param_grads", name) for name in (*names, "attention.bias")]
        right = [each for each in right if kind == "params" or each[1] == "attention.bias"]
        right += [("params", "attention.bias")]
        found = outcome(*((kind, name, 2.0) for name in names), right=tuple(right))
        for tolerated, expected in ((1.0, ["norm", "attention.qkv"]), (3.0, [EVERYWHERE])):
            comparisons = tuple(
                replace(each, tolerated=tolerated)
                if (each.name.kind, each.name.name) == ("param_grads", "attention.bias")
                else each
                for each in found.comparisons
            )
            named = blamed(replace(found, comparisons=comparisons))
            assert [module for module, *_ in named] == expected
            if expected == [EVERYWHERE]:
                assert named == [(EVERYWHERE, part, 2)]


def test_what_a_parameter_does_that_an_earlier_step_left_wrong_is_no_fault() -> None:
    found = outcome(
        ("params", "norm.weight", 9),
        ("outputs", "norm", 2),
        ("param_grads", "norm.weight", 2),
        ("outputs", "attention", 3),
        right=(("params", "attention.qkv.weight"), ("param_grads", "attention.qkv.weight")),
    )
    later = tuple(
        replace(each, name=replace(each.name, step=2)) if each.name.kind != "params" else each
        for each in found.comparisons
    )
    assert blamed(replace(found, comparisons=later)) == [
        ("norm", "update of its parameters", 9),
        ("attention", "forward pass", 3),
    ]


def test_a_wrong_norm_is_the_fault_where_gradients_are_right_or_divided_by_it() -> None:
    norm = ("gradient_norms", "norm", 5)
    after = (("params", "norm.weight", 9), ("states", "norm.weight.exp_avg", 7))
    one, other = ("param_grads", "norm.weight", 2), ("param_grads", "norm.bias", 2)
    right = (("param_grads", "norm.weight"), ("param_grads", "norm.bias"))
    of_script = [("", "norm of the gradients", 5)]
    assert blamed(outcome(norm, *after, right=right)) == of_script
    for factor, expected in ((0.5, of_script), (2.0, [(EVERYWHERE, "gradients", 2)])):
        found = outcome(norm, one, other, *after)
        scaled = tuple(
            replace(each, evidence=replace(each.evidence, factor=factor))
            if each.name.kind == "param_grads"
            else replace(each, evidence=replace(each.evidence, factor=2.0))
            for each in found.comparisons
        )
        assert blamed(replace(found, comparisons=scaled)) == expected
    found = blamed(outcome(norm, one, *after, right=right[1:]))
    assert found == [("norm", "gradients of its parameters", 2)]


def test_gradients_that_were_clipped_by_a_norm_that_another_one_made_wrong_are_no_fault() -> None:
    norm, wrong = ("gradient_norms", "norm", 5), ("param_grads", "attention.qkv.weight", 9)
    others = [("param_grads", f"norm.{each}", 2) for each in ("weight", "bias")]
    found = outcome(wrong, *others, norm)
    factors = {"norm": 1.25, "norm.weight": 0.8, "norm.bias": 0.8}
    comparisons = tuple(
        replace(each, evidence=replace(each.evidence, factor=factors.get(each.name.name)))
        for each in found.comparisons
    )
    expected = [("attention.qkv", "gradients of its parameters", 9)]
    assert blamed(replace(found, comparisons=comparisons)) == expected


def clipped_by_hand(*factors: tuple[str, float, float]) -> Outcome:
    """Gradients with the multiple of the reference that they are, and the reference's norm; no norm of all was compared."""
    found = outcome(*(("param_grads", name, 9) for name, _, _ in factors))
    return replace(
        found,
        comparisons=tuple(
            replace(
                each,
                evidence=Evidence("wrong scale", "it is", factor),
                norm=norm,
                made=factor * norm,
            )
            for each, (_, factor, norm) in zip(found.comparisons, factors, strict=True)
        ),
    )


def test_gradients_that_the_script_itself_clipped_are_no_fault_beside_the_one_that_is() -> None:
    """The norm of all is the reference's: 0.8² · (1 + 1) + x² = 3, so x = 1.311."""
    others = [("norm.weight", 0.8, 1.0), ("norm.bias", 0.8, 1.0)]
    wrong = ("attention.qkv.weight", 1.311488, 1.0)
    found = clipped_by_hand(*others, wrong)
    assert blamed(found) == [("attention.qkv", "gradients of its parameters", 9)]
    assert found.earliest == TensorName("param_grads", "attention.qkv.weight", 1)
    of_all = [(EVERYWHERE, "gradients", 9)]
    assert blamed(clipped_by_hand(*others, ("attention.qkv.weight", 1.5, 1.0))) == of_all
    assert blamed(clipped_by_hand(*others)) == of_all


def test_a_wrong_parameter_is_told_beside_gradients_that_the_update_may_reduce() -> None:
    """All replicas of the parameters agree, so the update communicates."""
    names = ("norm.weight", "attention.qkv.weight")
    missing = Evidence("missing reduction", "their mean is the reference")
    faults = tuple(
        Fault(
            TensorName("param_grads", name, 1), 0, MergeFault("replicas", "they differ"), 5, missing
        )
        for name in names
    )
    found = outcome(*((kind, name, 9) for name in names for kind in ("param_grads", "params")))
    assert blamed(replace(found, faults=faults)) == [(EVERYWHERE, "gradients, update", 9)]
    assert blamed(found) == [(EVERYWHERE, "gradients", 9)]
    apart = Fault(TensorName("params", "head", 1), 0, MergeFault("replicas", "they differ"), 5)
    [first, *_] = blamed(replace(found, faults=(*faults, apart)))
    assert first == (EVERYWHERE, "gradients", 9)


def test_what_comes_of_a_wrong_first_weight_is_no_second_fault() -> None:
    """But what is wrong in a module that does not hold it is one."""
    qkv, norm = "attention.qkv.weight", "norm.weight"
    found = outcome(
        *(("outputs", "attention.qkv", 7), ("param_grads", norm, 4), ("params", qkv, 3)),
        right=(("param_grads", qkv), ("params", norm), ("output_grads", "norm")),
    )
    before = [
        TensorComparison(TensorName("params", name, 0), order, times, 1.0, 1e-7)
        for order, (name, times) in enumerate(((qkv, 9), (norm, 0)))
    ]
    part = "first weights of its parameters"
    found = replace(found, comparisons=(*before, *found.comparisons))
    assert blamed(found)[0] == ("attention.qkv", part, 9)
    assert blamed(found)[1] == ("norm", "gradients of its parameters", 4)
    assert len(blamed(found)) == 2
    all_off = (before[0], replace(before[1], error=5))
    assert blamed(replace(found, comparisons=all_off)) == [(EVERYWHERE, "first weights", 9)]
    assert replace(found, comparisons=all_off).blame == Blame(EVERYWHERE, "first weights", None, ())


def test_a_place_that_does_not_fit_the_reference_is_no_fault_of_a_module() -> None:
    name = TensorName("inputs", "attention", 1)
    fault = Fault(name, 0, MergeFault("layout", "the layout says [4], and the reference has [2]"))
    found = outcome(("outputs", "norm", 9))
    [suspect] = suspects(replace(found, faults=(fault,)))
    assert suspect.module == "norm"


def test_a_missing_reduction_is_said_before_what_it_does() -> None:
    name = TensorName("outputs", "norm", 1)
    missing = Evidence("missing reduction", "their sum is the reference")
    fault = Fault(name, 0, MergeFault("replicas", "they differ"), 5.0, missing)
    found = outcome(("outputs", "norm", 9))
    [suspect] = suspects(replace(found, faults=(fault,)))
    assert (suspect.times, suspect.evidence) == (9, missing)


def test_earlier_numbers_are_said_before_a_missing_reduction() -> None:
    name = TensorName("params", "norm.weight", 1)
    missing = Evidence("missing reduction", "their mean is the reference")
    stale = Evidence("stale", "one has the reference of the beginning")
    faults = tuple(
        Fault(name, 0, MergeFault("replicas", "they differ"), times, each)
        for times, each in ((9.0, missing), (5.0, stale))
    )
    [suspect] = suspects(Outcome((), faults, (), calls=called(MODULES)))
    assert suspect.evidence == stale


def test_a_pass_that_was_not_made_is_no_fault_of_a_module() -> None:
    """The gradients that it would have made, and those of parameters without it, are its effects."""
    lost = TensorName("output_grads", "attention", 1, 2)
    fault = Fault(lost, -1, MergeFault("missing", "rank 0 recorded no such tensor"))
    weight = ("param_grads", "attention.qkv.weight", 9.0)
    lacking = MissingPass(
        StagePass(1, 2, 0, 0), 2, (0,), frozenset({lost}), frozenset({"attention.qkv.weight"})
    )
    found = replace(outcome(weight, right=GOOD), faults=(fault,))
    part = "no backward pass of micro-batch 2 on rank 0 of stage 0"
    assert ("", part) not in [each[:2] for each in blamed(found)]
    found = replace(found, missing_passes=(lacking,))
    assert [each[:2] for each in blamed(found)] == [("", part)]
    assert found.blame == lacking.blame
    other = TensorComparison(
        TensorName("param_grads", "attention.proj.weight", 1), 3, 4.0, 1.0, 1e-7
    )
    also = blamed(replace(found, comparisons=(*found.comparisons, other)))
    assert ("attention.proj", "gradients of its parameters") in [each[:2] for each in also]


def in_step_2(kind: str, name: str, times: float) -> TensorComparison:
    """A wrong tensor of the step after `outcome`'s."""
    [found] = outcome((kind, name, times)).comparisons
    return replace(found, name=replace(found.name, step=2), order=found.order + 100)


def test_a_later_pass_with_a_parameter_that_an_earlier_step_left_wrong_is_no_fault() -> None:
    """Also if that module's own gradient was not compared, or if a module shares the parameter with another one."""
    through = in_step_2("output_grads", "attention.qkv", 5)
    found = outcome(
        ("param_grads", "attention.proj.weight", 9), right=(*GOOD, ("output_grads", "attention"))
    )
    found = replace(found, comparisons=(*found.comparisons, through))
    act = module("attention", ("attention.act", ("outputs", "attention.qkv")))
    found = replace(found, calls=called({**MODULES, "attention.act": act}))
    expected = [("attention.proj", "gradients of its parameters", 9)]
    assert blamed(found) == expected
    of_act = in_step_2("output_grads", "attention.act", 0.5)
    found = replace(found, comparisons=(*found.comparisons, of_act))
    assert blamed(found) == [*expected, ("attention.act", "backward pass", 5)]

    through = in_step_2("output_grads", "norm", 5)
    tied = outcome(("param_grads", "embed.weight", 9), right=GOOD)
    tied = replace(tied, comparisons=(*tied.comparisons, through))
    head = module("Net", ("head", ("outputs", "norm")))
    modules = {**MODULES, "embed": module("Net", ("embed", ())), "head": head}
    del modules["attention"]
    right = in_step_2("output_grads", "head", 0.5)
    tied = replace(tied, comparisons=(*tied.comparisons, right))
    of_embed = ("embed", "gradients of its parameters", 9)
    assert blamed(replace(tied, calls=called(modules))) == [of_embed, ("head", "backward pass", 5)]
    modules["head"] = replace(head, shares=("embed.weight",))
    assert blamed(replace(tied, calls=called(modules))) == [of_embed]


def test_gradients_that_clipping_made_equal_again_were_all_off_by_the_factor_of_their_norm() -> (
    None
):
    """The constant that clipping adds to the norm leaves some of it: less than the tolerance in one gradient."""
    norm, weight, bias = (
        ("gradient_norms", "norm", 9),
        ("param_grads", "norm.weight", 9),
        ("param_grads", "attention.qkv.weight", 0.5),
    )
    found = outcome(norm, weight, bias, ("params", "norm.weight", 3))
    of_norm, wrong, right, update = found.comparisons
    of_norm = replace(
        of_norm, error=0.5, tolerated=1e-7, norm=2.0, made=1.0, evidence=Evidence(factor=0.5)
    )
    wrong = replace(wrong, error=6e-7, tolerated=2e-7)
    comparisons = (of_norm, wrong, replace(right, error=1e-8, tolerated=2e-7), update)
    reported = NormComparison(of_norm.name, 0, (0,), 1.0, 1.0, 1.0, 1e-6)
    found = replace(found, comparisons=comparisons, norms=(reported,))
    assert found.earliest == of_norm.name
    [blame] = suspects(found)
    assert (blame.module, blame.part) == (EVERYWHERE, "gradients")
    assert blame.evidence.says.startswith("their norm is 0.5 times the reference's")
    # A norm that is not that of the gradients, and a gradient that differs by more, are told by themselves.
    other = replace(found, norms=(replace(reported, own=2.0),))
    assert [each.part for each in suspects(other)] == ["norm of the gradients"]
    more = replace(wrong, error=2e-6)
    far = replace(found, comparisons=(of_norm, more, *comparisons[2:]))
    assert [each.module for each in suspects(far)] == ["norm"]


def test_gradients_that_each_rank_clipped_by_a_norm_of_its_own_are_no_fault() -> None:
    """One gradient was not reduced, so each rank has another norm, and clips all of its gradients by it."""
    right = [(name, 1.0001, 1.0) for name in ("norm.weight", "norm.bias", "attention.proj.weight")]
    found = clipped_by_hand(*right, ("attention.qkv.weight", 1.4, 0.1))
    comparisons = tuple(
        replace(each, error=error, tolerated=1e-6)
        for each, error in zip(found.comparisons, (1e-4, 1e-4, 1e-4, 0.4), strict=True)
    )
    faults = tuple(
        Fault(each.name, each.order, MergeFault("replicas", "they differ"), times)
        for each, times in zip(comparisons, (300, 300, 300, 6e5), strict=True)
    )
    found = replace(found, comparisons=comparisons, faults=faults)
    assert found.earliest == TensorName("param_grads", "attention.qkv.weight", 1)
    assert {each.module for each in suspects(found)} == {"attention.qkv"}
    # Replicas that agree were clipped by one norm, and gradients that differ little prove nothing.
    assert {each.module for each in suspects(replace(found, faults=()))} == {EVERYWHERE}
    near = (*comparisons[:3], replace(comparisons[3], error=2e-3))
    assert {each.module for each in suspects(replace(found, comparisons=near))} == {EVERYWHERE}


def test_what_follows_from_an_earlier_step_past_a_residual_or_everywhere_is_no_fault() -> None:
    block = {
        "Net": module("", ("Net", ())),
        "embed": module("Net", ("embed", ("inputs", "Net"))),
        "block": module("Net", ("block", ("outputs", "embed"))),
        "block.first": module("block", ("block.first", ("inputs", "block"))),
        "block.second": module("block", ("block.second", ())),
    }
    right = [in_step_2("output_grads", name, 0.5) for name in ("block", "block.first")]
    moved = outcome(("param_grads", "block.second.weight", 9), right=GOOD)
    through = in_step_2("output_grads", "embed", 5)
    found = replace(moved, calls=called(block), comparisons=(*moved.comparisons, through, *right))
    expected = [("block.second", "gradients of its parameters", 9)]
    assert blamed(found) == expected
    # No residual: only the first module is given what the embedding returns.
    block["block"] = module("Net", ("block", ()))
    block["block.first"] = module("block", ("block.first", ("outputs", "embed")))
    assert blamed(replace(found, calls=called(block))) == [
        *expected,
        ("block.first", "backward pass", 5),
    ]
    all_of_step_2 = [
        in_step_2("param_grads", f"block.{name}.weight", 7) for name in ("first", "second")
    ]
    moved = outcome(("params", "block.second.weight", 9), right=GOOD)
    found = replace(moved, calls=called(block), comparisons=(*moved.comparisons, *all_of_step_2))
    assert blamed(found) == [("block.second", "update of its parameters", 9)]


def test_what_follows_from_a_tensor_of_another_shape_is_no_fault_of_modules() -> None:
    """A rank reads another number of samples: no input of its modules can be rewritten."""
    read, passed = TensorName("inputs", "Net", 1), TensorName("outputs", "norm", 1)
    odd = "rank 0 has [2, 4], and the layout says [4, 4]"
    found = outcome(("inputs", "Net", 9), ("outputs", "norm", 3), ("param_grads", "norm.weight", 4))
    shapes = (Fault(read, 0, MergeFault("shape", odd)), Fault(passed, 1, MergeFault("shape", odd)))
    found = replace(found, comparisons=found.comparisons[2:], faults=shapes)
    assert [(module, part) for module, part, _ in blamed(found)] == [("", "what it hands to Net")]
    inner = replace(found, faults=shapes[1:])
    assert [(module, part) for module, part, _ in blamed(inner)] == [("norm", "forward pass")]
    before = outcome(("inputs", "attention.proj", 7))
    before = replace(before, faults=(Fault(passed, 1, MergeFault("shape", odd)),))
    assert [module for module, _, _ in blamed(before)] == ["norm", "attention"]


def test_a_gradient_clipped_by_a_wrong_norm_is_told_from_others_in_low_precision_too() -> None:
    """The factor of a few numbers in bfloat16 is off by its noise."""

    def scaled(kind: str, name: str, factor: float, tolerated: float) -> TensorComparison:
        evidence = Evidence("wrong scale", "", factor)
        of = TensorName(kind, name, 1)
        return TensorComparison(of, 0, abs(factor - 1), tolerated, 1e-3, evidence)

    norm = scaled("gradient_norms", "norm", 1.12, 1e-3)
    weight = scaled("param_grads", "attention.qkv.weight", 1.79, 0.04)
    for tolerated, blamed_too in ((0.041, False), (0.004, True)):
        clipped = scaled("param_grads", "norm.weight", 0.888, tolerated)
        right = outcome(right=(("param_grads", "attention.proj.weight"),)).comparisons
        found = Outcome((norm, weight, clipped, *right), (), (), calls=called(MODULES))
        modules = [module for module, _, _ in blamed(found)]
        assert ("norm" in modules) == blamed_too
        assert "attention.qkv" in modules
