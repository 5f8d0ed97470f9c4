"""What expressions are resolved to: names looked up, lets inlined, types found."""

from dataclasses import replace

import pytest

from tspec.resolve import load_text
from tspec.resolve.program import rules, types
from tspec.resolve.program.types import CallOf, Entity, ListOf, MapOf, SetOf

HEAD = "edition 2026\n\nmodule example\n\nuse std.torch\n\n"


def only_rule(body, before=""):
    loaded = load_text(f"{HEAD}{before}\ninvariant it {{\n{body}\n}}\n")
    assert loaded.diagnostics == ()
    assert loaded.program is not None
    return loaded.program.rules[0]


def expected(condition, window="each step", before=""):
    """What `expect` comes to for a parameter `p`, a module `m` and an optimizer `o`."""
    subjects = "for p in parameters\nfor m in modules\nfor o in optimizers"
    rule = only_rule(f"{subjects}\n{window}\nexpect {condition}", before)
    assert isinstance(rule.expect, rules.Holds)
    return rule.expect.condition


def left(condition, **more):
    """The left side of the comparison that is expected."""
    found = expected(condition, **more)
    assert isinstance(found, rules.Compare)
    return found.left


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("step", types.INT),
        ("loss", types.FLOAT),
        ("phase", types.Enum(("train", "eval"))),
        ("autocast.dtype", types.DTYPE),
        ("p.name", types.STRING),
        ("p.names", SetOf(types.STRING)),
        ("m.parameters", SetOf(Entity("parameter"))),
        ("m.parameters.name", ListOf(types.STRING)),
        ("m.parameters.names", SetOf(types.STRING)),
        ("m.parameters.grad.device.type", ListOf(types.STRING)),
        ("models.parameters", SetOf(Entity("parameter"))),
        ("o.param_groups.lr", ListOf(types.FLOAT)),
        ("p.data.shape", types.SHAPE),
        ("p.data.shape[0]", types.INT),
        ("p.data.dtype", types.DTYPE),
        ("m.attributes", MapOf(types.STRING, types.SCALAR)),
        ("count(parameters)", types.INT),
        ("zeros(p.data)", types.FLOAT),
        ("numel(p.data)", types.INT),
        ("norm(p.data, per: row)", ListOf(types.FLOAT)),
        ("max(norm(p.data, per: row))", types.FLOAT),
        ("min(p.data)", types.FLOAT),
        ("sum(p.data.shape)", types.INT),
        ("max(step, over: 3 steps)", types.INT),
        ("step + 1", types.INT),
        ("step / 2", types.FLOAT),
        ("step + 1.5", types.FLOAT),
        ("-step", types.INT),
        ("ceil(step / 2)", types.INT),
        ("abs(step)", types.INT),
        ("previous(loss)", types.FLOAT),
        ("first(p.names)", SetOf(types.STRING)),
        ("calls(forward).output.shape", ListOf(types.SHAPE)),
        ("forward.output.dtype", types.DTYPE),
        ("previous(p.dtype)", types.DTYPE),
        ("calls(forward)", ListOf(CallOf("forward"))),
        ("[p.name, p.data.dtype]", ListOf(types.SCALAR)),
        ("divisible(p.data.shape, by: 8)", ListOf(types.BOOL)),
    ],
)
def test_types(value, kind):
    assert left(f"{value} == {value}").type == kind


def test_a_feature_of_a_collection_of_tensors_is_that_of_all_as_one():
    found = left("norm(parameters.grad) == 0")
    assert isinstance(found, rules.Feature)
    assert found.type == types.FLOAT
    assert found.tensor.type == ListOf(types.TENSOR)


def test_tensors_are_compared_by_digest():
    found = expected("p.data == p.data")
    assert isinstance(found, rules.Compare)
    assert isinstance(found.left, rules.Feature)
    assert found.left.name == "digest"


def test_changed_is_a_digest_that_differs():
    found = expected("changed(p.data)")
    digest = rules.Feature(types.INT, found.span, "digest", found.left.tensor)
    assert found == rules.Compare(
        types.BOOL, found.span, "!=", digest, rules.Old(types.INT, found.span, digest)
    )


def test_a_change_of_what_may_be_absent_includes_its_coming_and_going():
    found = expected("changed(p.grad)")
    assert isinstance(found, rules.Or)
    comes, differs = found.items
    assert isinstance(comes.left, rules.Present)
    assert comes.right == rules.Old(types.BOOL, comes.span, comes.left)
    assert isinstance(differs, rules.And)


def test_a_percentage_is_its_number():
    found = expected("zeros(p.data) < 90%")
    assert found.right == rules.Constant(types.FLOAT, found.span, 0.9)


def test_a_chain_is_the_and_of_its_links():
    found = expected("0 <= step < 10")
    assert isinstance(found, rules.And)
    assert [link.op for link in found.items] == ["<=", "<"]


def test_not_in_is_the_negation_of_in():
    found = expected("step not in [1, 2]")
    assert isinstance(found, rules.Not)
    assert isinstance(found.value, rules.Member)


def test_a_let_is_put_in_place_of_its_name():
    with_let = left("slack == 0", before="let slack = 2 * ulp(float32)")
    assert with_let == left("2 * ulp(float32) == 0")


def test_lets_of_a_used_module_are_read_with_its_names():
    found = expected("count(models) == 1").left.value
    assert isinstance(found, rules.Subjects)
    assert [(each.field, each.value.value) for each in found.filters] == [
        ("root", True),
        ("called", True),
    ]


def test_finite_numbers():
    found = expected("finite(loss)")
    assert isinstance(found, rules.Compare)
    assert found.op == "<="
    assert found.left.name == "abs"


def test_a_scalar_stands_as_a_condition_if_it_is_true():
    found = expected('present(m.attributes["bias"]) and m.attributes["bias"]')
    assert found.items[1].op == "=="
    assert found.items[1].right.value is True


@pytest.mark.parametrize(
    ("condition", "scope"),
    [
        ("same(p.data)", "group"),
        ("same(p.data.shape)", "group"),
        ("same([p.name, p.data.dtype])", "group"),
        ("same(m.parameters.data.device)", "list"),
        ("any(m.parameters.requires_grad)", "list"),
        ("all(old(same(p.data)), over: 3 steps)", "time"),
        ("same(norm(p.data), over: 3 steps)", "time"),
    ],
)
def test_what_is_folded(condition, scope):
    found = expected(condition, window="across dp\neach step")
    assert isinstance(found, rules.Fold)
    assert found.scope == scope


def test_a_count_of_each_rank_is_summed_over_the_group():
    found = left("sum(count(m.parameters)) == 3", window="across dp\neach step")
    assert (found.scope, found.value.scope) == ("group", "list")


def test_words_are_values_of_what_they_stand_beside():
    assert expected("phase == train").right.value == "train"
    assert expected("p.dtype in [float32, bfloat16]").collection.items[1].value == "bfloat16"
    assert expected('p.data.device == "cuda:0"').right.type == types.DEVICE
    assert expected("p.data.memory_format == channels_last").right.value == "channels_last"


# --- presence -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [
        "present(p.grad) and norm(p.grad) > 0",
        "present(p.grad) implies norm(p.grad) > 0",
        "not present(p.grad) or norm(p.grad) > 0",
        "not (present(p.grad) and norm(p.grad) > 9)",
        "(step > 1 and present(p.grad)) implies norm(p.grad) > old(norm(p.grad))",
        "present(p.group) and p.group.lr > 0",
        'present(m.attributes["a"]) and m.attributes["a"] == 1',
        '"a" in m.attributes and m.attributes["a"] == 1',
        "present(p.grad) == true implies norm(p.grad) > 0",
        "present(p.grad) implies (step > 1 implies norm(p.grad) > 0)",
        "any(present(p.grad), over: 3 steps)",
        "present(p.grad) and present(p.main) and norm(p.grad) < norm(p.main)",
    ],
)
def test_a_guarded_value_may_be_used(condition):
    assert expected(condition).type == types.BOOL


@pytest.mark.parametrize(
    "condition",
    [
        "norm(p.grad) > 0",
        "norm(p.grad) > 0 and present(p.grad)",
        "present(p.grad) or norm(p.grad) > 0",
        "not present(p.grad) and norm(p.grad) > 0",
        "present(p.main) and norm(p.grad) > 0",
        "(present(p.grad) implies step > 1) and norm(p.grad) > 0",
        'present(m.attributes["a"]) and m.attributes["b"] == 1',
        "(present(p.grad) or step > 3) implies norm(p.grad) > 0",
    ],
)
def test_an_unguarded_value_is_refused(condition):
    body = f"for p in parameters\nfor m in modules\neach step\nexpect {condition}"
    loaded = load_text(f"{HEAD}invariant it {{\n{body}\n}}\n")
    assert [each.code for each in loaded.diagnostics] == ["TS0132"]


def test_when_guards_expect():
    rule = only_rule(
        "for p in parameters\neach step\nwhen present(p.grad)\nexpect norm(p.grad) > 0"
    )
    assert isinstance(rule.when, rules.Present)


# --- rules --------------------------------------------------------------------------------------


def test_the_calls_of_a_rule_without_a_window_are_its_windows():
    rule = only_rule("for c in calls(backward)\nexpect finite(c.loss)")
    assert rule.window == rules.Window("calls", rules.EventPattern(("backward",)))
    assert rule.subjects[0].collection.type == ListOf(CallOf("backward"))


def test_a_field_of_the_window_s_event_is_that_call_s():
    found = only_rule("during clip\nexpect clip.total_norm < 3").expect.condition.left
    assert isinstance(found.base, rules.WindowCall)
    found = only_rule("during optimizer.step\nexpect clip.total_norm < 3").expect.condition.left
    assert found.base == rules.LastCall(CallOf("clip"), found.span, rules.EventPattern(("clip",)))


def test_filters_of_the_window_read_the_variables():
    rule = only_rule(
        "for o in optimizers\nbefore optimizer.step(optimizer: o)\nexpect count(o.parameters) > 0"
    )
    (field,) = rule.window.event.filters
    assert field.field == "optimizer"
    assert isinstance(field.value, rules.Variable)


def test_a_bare_callable_is_an_event_of_its_own():
    loaded = load_text(
        f"{HEAD}invariant it {{\nfor c in calls(torch.nn.ReLU.forward, model.Act.forward)\n"
        "expect zeros(c.output) < 90%\n}\n"
    )
    rule = loaded.program.rules[0]
    names = ("torch.nn.ReLU.forward", "model.Act.forward")
    assert rule.window.event.events == names
    for name in names:
        event = loaded.program.vocabulary.event(name)
        assert event.bare
        assert event.fields == loaded.program.vocabulary.event("forward").fields


def test_thinning():
    window = only_rule("each step every 10 steps\nexpect loss < 1").window
    assert window.every == rules.Duration(10, "step")
    assert only_rule("before optimizer.step once\nexpect loss < 1").window.once


def test_groups():
    rule = only_rule("for p in parameters\nacross dp, p.replicas\neach step\nexpect same(p.data)")
    axis, field = rule.across
    assert axis == rules.Axis("dp")
    assert isinstance(field, rules.GroupField)


@pytest.mark.parametrize(
    ("otherwise", "responses"),
    [
        ("", (rules.Response("warn"),)),
        ("else stop", (rules.Response("stop"),)),
        (
            "else warn, then skip after 5 consecutive, then stop after 10 of 50 steps",
            (
                rules.Response("warn"),
                rules.Response("skip", consecutive=5),
                rules.Response("stop", frequent=10, among=rules.Duration(50, "step")),
            ),
        ),
    ],
)
def test_responses(otherwise, responses):
    rule = only_rule(f"before optimizer.step\nexpect loss < 1\n{otherwise}")
    assert rule.responses == responses


def test_a_draft_only_warns():
    loaded = load_text(f"{HEAD}draft invariant it {{\neach step\nexpect loss < 1\nelse stop\n}}\n")
    (rule,) = loaded.program.rules
    assert rule.draft
    assert rule.responses == (rules.Response("warn"),)


def test_claims():
    ordered = only_rule("each step\nexpect backward before clip before optimizer.step").expect
    assert [event.events for event in ordered.events] == [
        ("backward",),
        ("clip",),
        ("optimizer.step",),
    ]
    contains = only_rule("each step\nexpect contains forward").expect
    assert isinstance(contains, rules.Contains)
    change = only_rule(
        "for p in parameters\neach step\n"
        "expect changed(p.data) only during optimizer.step or load_state_dict"
    ).expect
    assert change.change
    assert change.subject.type == types.TENSOR
    call = only_rule("for c in calls(forward)\nexpect c only during wrapper.forward").expect
    assert not call.change


def test_extensions_add_fields_callables_and_how_they_are_computed():
    loaded = load_text(
        f"{HEAD}extend event backward = call model.backward {{\n  loss: tensor = total\n  parts: int = count(losses)\n}}\n"
        "extend entity parameter {\n  expert: bool\n}\nextend group tp = call model.ranks\n"
    )
    vocabulary = loaded.program.vocabulary
    event = vocabulary.event("backward")
    assert event.callables == ("torch.autograd.backward", "model.backward")
    assert [each.name for each in event.fields] == [
        "loss",
        "operations",
        "mixes_labels_otherwise",
        "factor",
        "average",
        "parts",
    ]
    of_torch, of_model = (event.fields_for(path)[0] for path in event.callables)
    assert of_torch.source == ("name", "tensors")
    assert of_model.source == ("name", "total")
    assert vocabulary.entity("parameter").field("expert").type == types.BOOL
    assert next(each for each in vocabulary.groups if each.name == "tp").callables == (
        "model.ranks",
    )


def test_equal_expressions_are_equal_wherever_they_stand():
    rule = only_rule(
        "for p in parameters\neach step\nwhen present(p.grad)\nexpect present(p.grad) and step > 1"
    )
    assert rule.expect.condition.items[0] == rule.when
    assert replace(rule.when, span=rule.span) == rule.when


def test_an_event_hides_no_value_of_its_name():
    """An event `train` alone is no value."""
    event = "event train = call trainer.Trainer.run"
    for condition in ("phase == train", "train == phase", "phase in [train, eval]"):
        text = f"each step\nwhen {condition}\nexpect count(calls(train)) == 0"
        loaded = load_text(f"{HEAD}{event}\n\ninvariant it {{\n{text}\n}}\n")
        assert loaded.diagnostics == (), condition
