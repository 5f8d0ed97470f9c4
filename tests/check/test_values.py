"""`docs/design/semantics.md`, "Values": a test for each line."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.check.building import Writer, decide, losses, tensor, value_is, verdicts
from tspec.builtin.folds import OF_NUMBERS
from tspec.check.interpret.folds import combine_digests, feature, fold_list, fold_many
from tspec.check.interpret.values import arithmetic, compare, function, member
from tspec.runtime.functions import apply
from tspec.trace.model import Missing, Ref, Tensor

ABSENT, UNKNOWN, NO_HISTORY = Missing.ABSENT, Missing.NOT_RECORDED, Missing.NO_HISTORY
NAN = math.nan


def end_of(**parameter: Any) -> Writer:
    """A run with one parameter, read at its end."""
    out = Writer()
    out.sample("parameter", "w", **parameter)
    out.finish()
    return out


def holds(condition: str, **parameter: Any) -> str:
    """The verdict of a condition on the one parameter `p`."""
    [found] = verdicts(f"for p in parameters each run expect {condition}", end_of(**parameter))
    return found


# --- Kleene, missing operands -------------------------------------------------------------------

TRUE, FALSE, MISSING = "p.requires_grad", "not p.requires_grad", "p.lr > 0"


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        (f"{FALSE} and {MISSING}", "violated"),
        (f"{MISSING} and {FALSE}", "violated"),
        (f"{TRUE} and {MISSING}", "unknown"),
        (f"{TRUE} or {MISSING}", "holds"),
        (f"{MISSING} or {TRUE}", "holds"),
        (f"{FALSE} or {MISSING}", "unknown"),
        (f"not ({MISSING})", "unknown"),
        (f"({FALSE}) implies ({MISSING})", "holds"),
        (f"({MISSING}) implies ({TRUE})", "holds"),
        (f"({MISSING}) implies ({FALSE})", "unknown"),
        ("p.lr + 1 > 0", "unknown"),
        ("abs(p.lr) >= 0", "unknown"),
        ("-p.lr > 0", "unknown"),
    ],
)
def test_kleene(condition: str, verdict: str) -> None:
    assert holds(condition, requires_grad=True) == verdict


def test_the_reason_is_that_of_the_first_missing_operand() -> None:
    rule = "each step expect previous(loss) + step > loss + loss"
    found = decide(rule, losses(UNKNOWN))
    assert [each.reason for each in found.decided] == ["no history yet"]


def test_present() -> None:
    assert holds("present(p.grad)", grad=tensor(1)) == "holds"
    assert holds("present(p.grad)", grad=ABSENT) == "violated"
    assert holds("present(p.grad)") == "unknown"
    assert holds("present(p.grad)", grad=Tensor()) == "holds"


# --- equality -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (NAN, NAN, False),
        (0.0, -0.0, True),
        (1, 1.0, True),
        (2**53 + 1, float(2**53), True),
        (2**53 + 1, 2**53, False),
        (True, 1, False),
        ("a", "a", True),
        ("1", 1, False),
        (Ref("k", "a"), Ref("k", "a"), True),
        (Ref("k", "a"), Ref("l", "a"), False),
        ((1, 2.0), (1.0, 2), True),
        ((1, NAN), (1, NAN), False),
        ((1,), (1, 1), False),
        (frozenset({"x"}), frozenset({"x"}), True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        (tensor(3), tensor(3, norm=1.0), True),
        (tensor(3), tensor(4), False),
        (Tensor(), tensor(4), UNKNOWN),
        ((1, ABSENT), (1, 2), ABSENT),
    ],
)
def test_equality(left: Any, right: Any, equal: Any) -> None:
    assert compare("==", left, right) is equal
    assert compare("!=", left, right) is (not equal if isinstance(equal, bool) else equal)


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "=="])
def test_with_nan_all_but_unequal_is_false(op: str) -> None:
    assert compare(op, NAN, 1.0) is False
    assert compare(op, 1, NAN) is False
    assert compare("!=", NAN, NAN) is True


def test_same_compares_bits() -> None:
    assert fold_list("same", [NAN, NAN]) is True
    assert fold_list("same", [0.0, -0.0]) is False
    assert fold_list("same", [1, 1.0]) is True
    assert fold_list("distinct", [0.0, -0.0]) is True
    assert fold_list("same", [(NAN, "a"), (NAN, "a")]) is True


def test_tensors_are_compared_by_digest() -> None:
    alike = "present(p.grad) and p.data == p.grad"
    assert holds(alike, data=tensor(1), grad=tensor(1, norm=2.0)) == "holds"
    assert holds(alike, data=tensor(1), grad=tensor(2, norm=2.0)) == "violated"
    assert fold_list("same", [tensor(1), tensor(1, norm=2.0)]) is True
    assert fold_list("same", [tensor(1), Tensor()]) is UNKNOWN
    assert fold_list("same", [tensor(1), tensor(2), Tensor()]) is False


def test_changed() -> None:
    def changed(before: Any, after: Any) -> list[str]:
        out = Writer()
        out.sample("parameter", "w", grad=before)
        out.step(1)
        out.call("backward")
        out.sample("parameter", "w", grad=after)
        out.finish()
        return verdicts("for p in parameters each step expect changed(p.grad)", out)

    assert changed(tensor(1), tensor(2)) == ["holds"]
    assert changed(tensor(1), tensor(1)) == ["violated"]
    assert changed(ABSENT, ABSENT) == ["violated"]
    assert changed(tensor(1), ABSENT) == ["holds"]
    assert changed(ABSENT, tensor(1)) == ["holds"]
    assert changed(UNKNOWN, tensor(1)) == ["unknown"]


# --- lists and folds ----------------------------------------------------------------------------


def many(*values: Any) -> Writer:
    """Parameters a, b, c ... of which `lr` (or with tensors `grad`) are the values."""
    out = Writer()
    for place, value in enumerate(values):
        name = "grad" if isinstance(value, Tensor) else "lr"
        fields = {"grad": value, "lr": value} if isinstance(value, Missing) else {name: value}
        out.sample("parameter", "abcdef"[place], **fields)
    out.finish()
    return out


def test_absent_elements_are_left_out_of_a_field_of_a_collection() -> None:
    assert value_is("count(parameters.grad) == 2", many(tensor(1), ABSENT, tensor(2))) == "holds"
    assert value_is("count(parameters.grad) == 2", many(tensor(1), UNKNOWN, tensor(2))) == "unknown"
    assert value_is("sum(parameters.lr) == 3", many(1.0, ABSENT, 2.0)) == "holds"


@pytest.mark.parametrize(
    ("fold", "values", "result"),
    [
        ("any", [False, UNKNOWN], UNKNOWN), ("any", [True, UNKNOWN], True),
        ("all", [True, UNKNOWN], UNKNOWN), ("all", [False, UNKNOWN], False),
        ("same", [1, 1, UNKNOWN], UNKNOWN), ("same", [1, 2, UNKNOWN], False),
        ("distinct", [1, 2, UNKNOWN], UNKNOWN), ("distinct", [1, 1, UNKNOWN], False),
        ("sum", [1.0, UNKNOWN], UNKNOWN), ("count", [1, UNKNOWN], UNKNOWN),
        ("max", [1.0, ABSENT], 1.0), ("count", [1, ABSENT], 1),
        ("sum", [], 0), ("count", [], 0), ("any", [], False), ("all", [], True),
        ("same", [], True), ("distinct", [], True), ("min", [], NO_HISTORY),
        ("max", [], NO_HISTORY), ("mean", [], NO_HISTORY), ("std", [], NO_HISTORY),
        ("spread", [], NO_HISTORY), ("sum", [2**60, 1], 2**60 + 1), ("mean", [1, 2], 1.5),
        ("std", [1.0, 3.0], 1.0), ("spread", [3, 1], 2), ("sum", [1e16, 1.0, 1.0], 1e16),
        ("median", [3, 1, 2], 2.0), ("median", [4.0, 1, 2, 3.0], 2.5), ("median", [], NO_HISTORY),
        ("median", [1.7e308], 1.7e308), ("median", [1.0, UNKNOWN], UNKNOWN),
        ("sum", ["x"], UNKNOWN), ("count", [False, False], 2),
    ],
)  # fmt: skip
def test_folds_of_lists(fold: str, values: list[Any], result: Any) -> None:
    found = fold_list(fold, values)
    assert found == result and type(found) is type(result)


@pytest.mark.parametrize("fold", OF_NUMBERS)
def test_nan_spreads(fold: str) -> None:
    found = fold_list(fold, [1.0, NAN, 2.0])
    assert isinstance(found, float) and math.isnan(found)


def test_count_over_members_and_instances() -> None:
    assert fold_many("count", [True, False, True]) == 2
    assert fold_many("count", [1.0, ABSENT, 0.0]) == 2
    assert fold_many("count", [1.0, UNKNOWN]) is UNKNOWN
    assert fold_many("sum", [1.0, ABSENT]) is ABSENT


# --- features -----------------------------------------------------------------------------------


def test_zeros_is_a_fraction() -> None:
    assert holds("zeros(p.data) == 50%", data=tensor(zeros=2, numel=4)) == "holds"
    assert holds("zeros(p.data) == 0", data=tensor(zeros=0, numel=0)) == "holds"


def test_features_of_a_collection_are_of_all_as_one() -> None:
    first = tensor(5, norm=3.0, finite=True, zeros=1, numel=4, min=-1.0, max=2.0, sum=8.0)
    second = tensor(6, norm=4.0, finite=False, zeros=1, numel=4, min=0.0, max=5.0, sum=0.0)
    out = many(first, second)
    for condition in (
        "norm(parameters.grad) == 5", "not finite(parameters.grad)",
        "zeros(parameters.grad) == 25%", "min(parameters.grad) == -1", "max(parameters.grad) == 5",
        "sum(parameters.grad) == 8", "mean(parameters.grad) == 1", "numel(parameters.grad) == 8",
    ):  # fmt: skip
        assert value_is(condition, out) == "holds", condition
    assert value_is("std(parameters.grad) == 1", out) == "unknown"
    assert feature("digest", (first, ABSENT, second)) == combine_digests([5, 6])


def test_features_of_an_empty_collection() -> None:
    out = many(ABSENT)
    for condition in (
        "norm(parameters.grad) == 0", "finite(parameters.grad)", "zeros(parameters.grad) == 0",
        "sum(parameters.grad) == 0",
    ):  # fmt: skip
        assert value_is(condition, out) == "holds", condition
    assert value_is("max(parameters.grad) == 0", out) == "unknown"
    assert feature("digest", ()) == combine_digests([])


def test_the_digest_of_several_depends_on_their_order() -> None:
    mixed = 0x9E3779B97F4A7C15
    for digest in (1, -1):
        mixed = (mixed ^ (digest % 2**64)) * 0x100000001B3 % 2**64
    assert combine_digests([1, -1]) % 2**64 == mixed
    assert combine_digests([1, -1]) != combine_digests([-1, 1])
    assert -(2**63) <= combine_digests([1, -1]) < 2**63


def test_lists_of_features() -> None:
    first, second = tensor(dtype="float32", device="cuda:1"), tensor(dtype="float16", device="cpu")
    out = many(first, second)
    assert value_is("parameters.grad.dtype == [float32, float16]", out) == "holds"
    assert value_is('"cpu" in parameters.grad.device.type', out) == "holds"
    assert value_is('parameters.grad.device.type == ["cuda", "cpu"]', out) == "holds"


def test_what_is_only_seen_live_is_not_recorded() -> None:
    for condition in ("max(norm(p.data, per: row)) > 0", "digest(cast(p.data, float16)) == 1"):
        assert holds(condition, data=tensor(1, norm=1.0)) == "unknown"
    changes = "for p in parameters each run expect zeros(change(p.data)) < 1"
    assert verdicts(changes, end_of(data=tensor(1, zeros=0, numel=1))) == ["unknown"]


# --- membership, indices, functions -------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "collection", "found"),
    [
        (1, (1.0, 2), True), (3, (1, 2), False), (NAN, (NAN,), False),
        (1, (1, UNKNOWN), True), (3, (1, UNKNOWN), UNKNOWN), (3, (1, ABSENT), False),
        ((1, 2), (1, 2, 3), True), ((), (1,), True), (frozenset({1}), (2,), False),
        ({"a": 1}, {"a": 1, "b": 2}, True), ({"a": 1}, {"a": 2}, False), ({"a": 1}, {}, False),
        ("a", {"a": 1}, True), ("b", "abc", True), ("x", "abc", False),
        (UNKNOWN, (1,), UNKNOWN), (1, UNKNOWN, UNKNOWN), (tensor(1), (tensor(1),), True),
    ],
)  # fmt: skip
def test_membership(item: Any, collection: Any, found: Any) -> None:
    assert member(item, collection) is found


def test_indices() -> None:
    shape = tensor(shape=(2, 3))
    assert holds("p.data.shape in parameters.data.shape", data=shape) == "holds"
    assert holds("p.data.shape in [p.data.shape]", data=shape) == "holds"
    assert holds("[2, 4] in [p.data.shape]", data=shape) == "violated"
    assert holds("[2, 3] in p.data.shape", data=shape) == "holds"
    assert holds("p.data.shape not in parameters.data.shape", data=shape) == "violated"
    assert holds("p.data.shape[0] == 2 and p.data.shape[-1] == 3", data=shape) == "holds"
    found = decide("for p in parameters each run expect p.data.shape[5] == 1", end_of(data=shape))
    assert [each.reason for each in found.decided] == ["absent"]


def test_entries_of_a_map() -> None:
    out = Writer()
    out.sample("module", "m", attributes={"width": 4, "name": "x"})
    out.finish()
    for condition, verdict in (
        ('present(m.attributes["depth"])', "violated"),
        ('present(m.attributes["width"]) and m.attributes["width"] == 4', "holds"),
        ('present(m.attributes["name"]) and m.attributes["name"] > 4', "unknown"),
        ('present(m.attributes["name"]) and m.attributes["name"] == 4', "violated"),
        ('"width" in m.attributes', "holds"),
        ("m.attributes in m.attributes", "holds"),
    ):
        assert verdicts(f"for m in modules each run expect {condition}", out) == [verdict]


def test_the_union_of_sets() -> None:
    out = Writer()
    for name, members in (("m", "ab"), ("n", "bc")):
        refs = frozenset(Ref("parameter", each) for each in members)
        out.sample("module", name, parameters=refs)
    for name in "abc":
        out.sample("parameter", name)
    out.finish()
    assert value_is("count(modules.parameters) == 3", out) == "holds"
    out.records.insert(0, out.records[0].__class__(0, out.context, "module", "x", {}))
    assert value_is("count(modules.parameters) == 3", out) == "unknown"


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("round", (2.5,), 2), ("round", (3.5,), 4), ("ceil", (1.2,), 2), ("floor", (-1.2,), -2),
        ("sqrt", (-1.0,), NAN), ("log", (0.0,), -math.inf), ("log", (-1.0,), NAN),
        ("exp", (1e4,), math.inf), ("exp", (10**400,), math.inf), ("exp", (-(10**400),), 0.0),
        ("exp", (-math.inf,), 0.0), ("exp", (NAN,), NAN), ("abs", (-3,), 3), ("ceil", (math.inf,), math.inf),
        ("ulp", ("float32",), 2.0**-23), ("ulp", ("bfloat16",), 2.0**-7),
        ("divisible", (6, 3), True), ("divisible", (6, 0), False),
        ("divisible", ((6, 7), 2), (True, False)), ("divisible", ("x", 2), UNKNOWN),
        ("matches", ("layer.weight", "^l.*w"), True), ("matches", ("a.b", "^b"), False),
        ("endswith", ("bias", "as"), True), ("startswith", ("bias", "as"), False),
        ("join", ("model/", "w"), "model/w"), ("join", ("", ""), ""), ("join", ("a", 1), UNKNOWN),
        ("join", ("a", ABSENT), ABSENT), ("sqrt", (True,), UNKNOWN), ("abs", (ABSENT,), ABSENT),
    ],
)  # fmt: skip
def test_functions(name: str, arguments: tuple[Any, ...], result: Any) -> None:
    for found in (function(name, arguments), apply(name, *arguments)):
        same_nan = isinstance(result, float) and math.isnan(result) and math.isnan(float(found))  # type: ignore[arg-type]
        assert same_nan or (found == result and type(found) is type(result))


@pytest.mark.parametrize(
    ("op", "left", "right", "result"),
    [
        ("/", 1, 2, 0.5), ("/", 1, 0, math.inf), ("/", -1.0, 0, -math.inf), ("/", 1, -0.0, -math.inf),
        ("+", 2**60, 1, 2**60 + 1), ("+", 1, 0.5, 1.5), ("*", 3, 4, 12), ("-", "x", 1, UNKNOWN),
        ("*", 1e300, 1e300, math.inf), ("+", True, 1, UNKNOWN), ("-", UNKNOWN, ABSENT, UNKNOWN),
    ],
)  # fmt: skip
def test_arithmetic(op: str, left: Any, right: Any, result: Any) -> None:
    found = arithmetic(op, left, right)
    assert found == result and type(found) is type(result)
    assert math.isnan(arithmetic("/", 0, 0))  # type: ignore[arg-type]


def test_is_means_one_object() -> None:
    out = Writer()
    out.step(1)
    out.call("forward", inputs=(tensor(1, object=7), tensor(2, object=7), tensor(1, object=8)))
    out.call("forward", inputs=(tensor(1), tensor(1), tensor(1)))
    out.finish()
    for condition, found in (
        ("c.inputs[0] is c.inputs[1]", ["holds", "unknown"]),
        ("c.inputs[0] is c.inputs[2]", ["violated", "unknown"]),
    ):
        assert verdicts(f"for c in calls(forward) expect {condition}", out) == found


def test_classes() -> None:
    out = Writer()
    out.sample(
        "module", "m", **{"class": "torch.nn.modules.linear.Linear torch.nn.Linear torch.nn.Module"}
    )
    out.finish()
    for condition, found in (
        ("isinstance(m, torch.nn.Linear)", "holds"),
        ("isinstance(m, torch.nn.Conv2d)", "violated"),
        ("isinstance(m, [torch.nn.Conv2d, torch.nn.Module])", "holds"),
        ("count(modules(class: torch.nn.Linear)) == 1", "holds"),
    ):
        assert verdicts(f"for m in modules each run expect {condition}", out) == [found]


def test_transpose() -> None:
    ranks = []
    for rank in (0, 1):
        out = Writer(rank)
        out.step(1)
        fields = {"group": (0, 1), "input_split_sizes": ((1, 2), (3, 4))[rank]}
        out.call("all_to_all", output_split_sizes=((1, 3), (2, 4))[rank], **fields)
        out.call("all_to_all", output_split_sizes=((1, 2), (3, 4))[rank], **fields)
        out.finish()
        ranks.append(out)
    rule = (
        "for c in calls(all_to_all) across c.group\n"
        "when present(c.input_split_sizes) and present(c.output_split_sizes)\n"
        "expect c.output_split_sizes == transpose(c.input_split_sizes)"
    )
    assert verdicts(rule, *ranks) == ["holds", "violated"]


def test_devices() -> None:
    def on(device: str, condition: str) -> str:
        return holds(condition, data=tensor(1, device=device))

    index = "present(p.data.device.index) and p.data.device.index == 1"
    assert on("cuda:1", index) == "holds"
    assert on("cuda:0", index) == "violated"
    assert on("cpu", "present(p.data.device.index)") == "violated"
    assert on("cpu", "p.data.device == cpu") == "holds"
    assert on("cuda:1", "p.data.device == cuda") == "violated"
