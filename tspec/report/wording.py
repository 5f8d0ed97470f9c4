"""The words of a finding: expectation and observation."""

from __future__ import annotations

from collections.abc import Mapping

from tspec.builtin.actions import DEFAULT
from tspec.report.collect import Symptom
from tspec.resolve.program import rules
from tspec.resolve.program.failures import event_words, failure
from tspec.resolve.program.types import Entity, innermost
from tspec.values import about_shards, observed


def message(symptom: Symptom, shards: Mapping[str, str] | None = None) -> str:
    """One sentence: the rule's expectation, the values found instead, and which parameters are shards.

    `shards`: parameter -> the shard that the rank holds, in words.
    """
    return _expected(symptom) + about_shards(_of_parameters(symptom, shards or {}))


def _of_parameters(symptom: Symptom, shards: Mapping[str, str]) -> Mapping[str, str]:
    """The parameters among the subjects that are cut."""
    named = zip(symptom.rule.subjects, symptom.first.instance.subjects, strict=True)
    return {
        name: shards[name]
        for variable, name in named
        if innermost(variable.collection.type) == Entity("parameter") and name in shards
    }


def _expected(symptom: Symptom) -> str:
    found = symptom.first
    said = failure(symptom.rule)
    if isinstance(symptom.rule.expect, rules.Contains) and not found.reason:
        return said + _in_window(symptom.rule, found.step)
    return observed(said, found.reason, found.values)


def action(rule: rules.Rule) -> str:
    """The rule's actions as its `else` says them; drafts only warn."""
    if rule.draft or not rule.responses:
        return DEFAULT
    return ", then ".join(map(_response, rule.responses))


def subject(symptom: Symptom) -> str:
    """The first subject that violated the rule, as people name it."""
    return ", ".join(
        _named(rule_for, name)
        for rule_for, name in zip(
            symptom.rule.subjects, symptom.first.instance.subjects, strict=True
        )
    )


def _named(variable: rules.For, name: str) -> str:
    if not name.startswith("#"):
        return name
    collection = variable.collection
    if isinstance(collection, rules.Calls):
        return f"{' or '.join(collection.event.events)} {name}"
    return f"{variable.variable} {name}"


def _response(response: rules.Response) -> str:
    if response.consecutive is not None:
        return f"{response.action} after {response.consecutive} consecutive steps"
    if response.frequent is not None and response.among is not None:
        among = response.among
        return f"{response.action} after {response.frequent} of {among.count} {among.unit}s"
    return response.action


def _in_window(rule: rules.Rule, step: int) -> str:
    if rule.window.span == "step":
        return f" in step {step}"
    if rule.window.span is not None:
        return f" in the {rule.window.span} that ended at step {step}"
    if rule.window.event is not None:
        return f" in {event_words(rule.window.event)} of step {step}"
    return f" in step {step}"
