"""What a script says becomes: instants, states, tensors, ranks."""

from __future__ import annotations

import math

from tests.testing.specs import failures, program
from tspec.resolve.program.scripts import Script
from tspec.testing.play import play
from tspec.testing.tensors import NUMEL, tensor
from tspec.trace.model import (
    Begin,
    Boundary,
    End,
    Finish,
    Missing,
    Record,
    Ref,
    Sample,
    Tensor,
    Trace,
)

RULE = "invariant r {\n  each step\n  expect step > 0\n  else warn\n}\n"


def played(script: str, head: str = "events") -> Trace:
    """The trace of a script."""
    found = program(f'{RULE}\ntest "t" {{ {head} {{ {script} }} passes r }}\n')
    events = found.tests[0].events
    assert isinstance(events, Script)
    return play(events, found.vocabulary)


def records(script: str) -> tuple[Record, ...]:
    return played(script).streams[0].records


def samples(trace: Trace, kind: str, rank: int = 0) -> list[Sample]:
    found = trace.streams[rank].records
    return [each for each in found if isinstance(each, Sample) and each.kind == kind]


def test_steps_open_with_an_epoch_and_a_microbatch_and_the_run_ends() -> None:
    found = records("step 1..2 { backward }")
    spans = [(each.span, each.index) for each in found if isinstance(each, Boundary)]
    assert spans == [("epoch", 1), ("step", 1), ("microbatch", 1), ("step", 2), ("microbatch", 1)]
    assert isinstance(found[-1], Finish)


def test_what_happens_in_a_call_lies_between_its_edges() -> None:
    found = records('step 1 { optimizer.step { parameter("w").data = changed } }')
    (begin,), (end,) = ([e for e in found if isinstance(e, kind)] for kind in (Begin, End))
    inside = [each.seq for each in found if isinstance(each, Sample) and each.fields.get("data")]
    assert all(begin.seq < seq < end.seq for seq in inside) and inside


def test_a_subject_begins_with_its_name_and_without_what_may_be_absent() -> None:
    first = samples(played('step 0 { parameter("w") }'), "parameter")[0]
    assert first.fields["name"] == "w" and first.fields["grad"] is Missing.ABSENT
    assert "data" not in first.fields


def test_new_contents_are_alike_on_all_ranks_and_new_in_each_step() -> None:
    found = played('step 1..2 { parameter("w").data = changed }', "events on 2 ranks")
    zero, one = (
        [e.fields["data"].digest for e in samples(found, "parameter", rank) if "data" in e.fields]  # type: ignore[union-attr]
        for rank in (0, 1)
    )
    assert zero == one and len(set(zero)) == 2


def test_what_one_rank_says_is_its_own() -> None:
    found = played('step 1 { rank 1 { parameter("w").data = changed } }', "events on 2 ranks")
    assert not samples(found, "parameter", 0) and samples(found, "parameter", 1)


def test_a_feature_changes_what_the_tensor_holds_and_another_does_not() -> None:
    script = (
        'step 1 { parameter("w").data = tensor(norm: 2.0) parameter("w").data.dtype = bfloat16'
        ' parameter("w").data.norm = nan }'
    )
    first, cast, changed = (
        each.fields["data"]
        for each in samples(played(script), "parameter")
        if "data" in each.fields
    )
    assert isinstance(first, Tensor) and isinstance(cast, Tensor) and isinstance(changed, Tensor)
    assert first.digest == cast.digest != changed.digest
    assert (cast.dtype, cast.norm) == ("bfloat16", 2.0)
    assert changed.finite is False and changed.object == first.object


def test_an_ordinary_tensor_is_consistent() -> None:
    assert tensor({}, 1, 2) == tensor({"norm": 1.0, "finite": True}, 1, 2)
    assert tensor({"norm": 0.0}, 1, 2).zeros == NUMEL
    assert tensor({"zeros": 1.0}, 1, 2).norm == 0
    assert tensor({"shape": (2, 3)}, 1, 2).numel == 6
    assert math.isnan(tensor({"finite": False}, 1, 2).norm or 0)
    assert tensor({"min": -math.inf}, 1, 2).finite is False


def test_the_only_subject_of_a_kind_is_that_of_a_call() -> None:
    found = records(
        'step 0 { optimizer("a") } step 1 { optimizer.step } step 2 { optimizer("b") optimizer.step }'
    )
    steps = [each.fields.get("optimizer") for each in found if isinstance(each, Begin)]
    assert steps == [Ref("optimizer", "a"), None]


def test_a_class_is_known_with_its_bases() -> None:
    (found,) = (
        each.fields["class"]
        for each in samples(played('step 0 { module("m").class = torch.nn.Conv2d }'), "module")
        if "class" in each.fields
    )
    assert isinstance(found, str)
    assert {"torch.nn.Conv2d", "torch.nn.modules.conv.Conv2d", "torch.nn.Module"} <= {
        *found.split()
    }


def test_ranks_of_a_mesh_have_its_groups() -> None:
    text = f"mesh m {{\n  order: tp, dp\n  tp: 2\n  dp: 2\n}}\n{RULE}\n"
    found = program(f'{text}test "t" {{ events on mesh m {{ step 1 {{ backward }} }} passes r }}\n')
    script = found.tests[0].events
    assert isinstance(script, Script)
    groups = {
        e.subject: e.fields["ranks"] for e in samples(play(script, found.vocabulary), "group", 1)
    }
    assert groups == {"tp": (0, 1), "dp": (1, 3), "world": (0, 1, 2, 3)}


def test_a_subject_that_is_gone_is_gone() -> None:
    text = """
invariant there {
  each step
  expect count(parameters) == 1
  else warn
}

test "gone" {
  events {
    step 1 { parameter("w") }
    step 2 { parameter("w") = gone }
    step 3 { parameter("w") }
  }
  violates there at step 2
}
"""
    assert failures(text) == []
