"""Where a framework keeps main gradients, claims compare these over its groups, where it has reduced them."""

from __future__ import annotations

import pytest

from tspec.infer import STANDARD, vocabulary
from tspec.infer.heads import Claim
from tspec.infer.relations import RELATIONS
from tspec.infer.survey import SeenEvent, SeenKind, Survey

FIELDS = frozenset({"data", "grad", "requires_grad", "main", "name"})
MEGATRON = FIELDS | {"main_grad", "shard", "sharded", "expert", "tensor_model_parallel", "counted"}
EVENTS = ("optimizer.step", "update", "finalize_grads")


def a_survey(fields: frozenset[str], events: tuple[str, ...]) -> Survey:
    """A job with parameters of these fields on two axes."""
    known = vocabulary((*STANDARD, "std.megatron"))
    seen = {
        "parameter": fields,
        "state": frozenset({"data", "name"}),
        "optimizer": frozenset({"parameters"}),
        "module": frozenset({"training", "parameters"}),
    }
    return Survey(
        events=tuple(
            SeenEvent(event, 1.0, frozenset(field.name for field in event.fields))
            for event in known.events
            if event.name in events
        ),
        kinds=tuple(
            SeenKind(kind, seen[kind.name]) for kind in known.entities if kind.name in seen
        ),
        axes=("dp", "expert_dp"),
        classes=(),
        ambient=frozenset(),
        steps=10,
    )


def proposed(survey: Survey) -> list[Claim]:
    return [claim for propose in RELATIONS for claim in propose(survey)]


def across(survey: Survey, axis: str) -> set[tuple[str, str | None, str | None]]:
    """Claim, window and guard of what is compared over an axis, advice left out."""
    return {
        (claim.expect, claim.head.window, claim.guard)
        for claim in proposed(survey)
        if claim.head.across == axis and claim.head.subjects and claim.relation != "advice"
    }


def test_main_gradients_are_compared_where_they_are_reduced() -> None:
    survey = a_survey(MEGATRON, EVENTS)
    reduced = "after finalize_grads every 10 steps"
    before = "before update every 10 steps"
    cut = "present(p.{0}) and not p.sharded and {1}"
    for axis, experts in (("dp", "not p.expert"), ("expert_dp", "p.expert")):
        assert across(survey, axis) == {
            ("same(p.main_grad)", reduced, cut.format("main_grad", experts)),
            ("same(p.main)", before, cut.format("main", experts)),
            ("same(p.data)", before, "p in models.parameters"),
            ("same(p.requires_grad)", "before update", None),
        }


def test_the_update_of_the_framework_is_the_one_of_the_loop() -> None:
    claims = proposed(a_survey(MEGATRON, EVENTS))
    found = {claim.expect for claim in claims}
    assert "count(calls(update)) == 1" in found
    assert "finalize_grads before update" in found
    assert "same(update.grad_norm)" in found
    assert "changed(p.data) only during update" in found
    assert "finite(p.main_grad)" in found
    for other in ("count(calls(optimizer.step))", "present(p.grad)", "p in models.parameters"):
        assert not any(other in text for text in found), other


def test_what_an_update_returns_is_no_argument_of_it() -> None:
    claims = proposed(a_survey(MEGATRON, EVENTS))
    assert not {"c.success", "present(c.grad_norm)"} & {claim.expect for claim in claims}


@pytest.mark.parametrize("events", [("optimizer.step",), EVENTS])
def test_without_main_gradients_updates_are_those_of_torch(events: tuple[str, ...]) -> None:
    """Also where a vocabulary has an event of that name."""
    survey = a_survey(FIELDS, events)
    assert across(survey, "dp") == {
        ("same(p.grad)", "before optimizer.step every 10 steps", "present(p.grad)"),
        ("same(p.main)", "before optimizer.step every 10 steps", "present(p.main)"),
        ("same(p.data)", "after optimizer.step every 10 steps", None),
        ("same(p.requires_grad)", "after optimizer.step", None),
        ("same(s.data)", "after optimizer.step every 10 steps", None),
    }
    found = {claim.expect for claim in proposed(survey)}
    assert {"changed(p.data) only during optimizer.step", "p in models.parameters"} <= found
