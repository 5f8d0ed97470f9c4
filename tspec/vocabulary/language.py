"""The entries of the language itself: features of tensors, folds, functions, and the words of a rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tspec.builtin.actions import ACTIONS
from tspec.builtin.examples import EACH_PARAMETER, EACH_STEP
from tspec.builtin.features import FEATURES, BuiltinFeature
from tspec.builtin.folds import FOLDS, BuiltinFold
from tspec.builtin.functions import FUNCTIONS, BuiltinFunction
from tspec.vocabulary.entries import EntryKind, VocabularyEntry

KEYWORDS: Mapping[str, tuple[str, str]] = {
    "for": ("One instance for each subject of a collection.", f"{EACH_PARAMETER} finite(p.data)"),
    "across": (
        "One instance for each group of ranks; `same(x)` then compares the ranks.",
        "across dp each step expect same(step)",
    ),
    "each": (
        "Over each `step`, `microbatch`, `epoch`, or the `run`.",
        "each epoch expect contains backward",
    ),
    "before": (
        "At the begin of each call of an event; between two events, their order.",
        "before optimizer.step expect count(parameters.grad) > 0",
    ),
    "after": ("At the end of each call of an event.", "after optimizer.step expect finite(loss)"),
    "during": (
        "From each call of an event to its return.",
        "for p in parameters during backward expect not changed(p.data)",
    ),
    "calls": (
        "The calls of an event: as subjects, or those in the window.",
        "for c in calls(dropout) expect c.p < 1",
    ),
    "every": (
        "Only at steps that a number divides.",
        "after optimizer.step every 10 steps expect finite(loss)",
    ),
    "once": (
        "Only at the first occurrence.",
        "before optimizer.step once expect count(parameters) > 0",
    ),
    "when": (
        "Where the rule applies; elsewhere it is idle.",
        "each step when step > 1 expect contains backward",
    ),
    "expect": ("What must be true.", f"{EACH_STEP} finite(loss)"),
    "else": ("What to do where it is not.", f"{EACH_STEP} finite(loss)"),
    "then": (
        "Between two actions: the next one, which is due under a condition.",
        f"{EACH_STEP} finite(loss)",
    ),
    "consecutive": (
        "An action is due after so many checks in a row that fail.",
        f"{EACH_STEP} loss < 10",
    ),
    "of": (
        "An action is due after so many failing checks among the last steps or epochs.",
        f"{EACH_STEP} loss < 10",
    ),
    "contains": ("A call of the event lies in the window.", f"{EACH_STEP} contains backward"),
    "only": (
        "A tensor changes, or an event happens, within calls of some events alone.",
        "for p in parameters each step expect changed(p.data) only during optimizer.step",
    ),
    "and": ("Both conditions are true.", f"{EACH_STEP} loss > 0 and loss < 10"),
    "or": ("One of the conditions is true.", f"{EACH_STEP} loss < 10 or step < 5"),
    "not": ("The condition is false.", f"{EACH_STEP} not (loss > 10)"),
    "implies": (
        "Where the first is true, so is the second.",
        f"{EACH_STEP} step > 5 implies loss < 10",
    ),
    "in": (
        "A value is in a list, set or map, or a string in a string.",
        "for p in parameters after optimizer.step expect p in models.parameters",
    ),
    "is": (
        "The same object; of values that are no tensors, `==`.",
        "for o in optimizers before optimizer.step expect optimizer.step.optimizer is o",
    ),
    "true": ("The condition that always holds.", "each step expect autocast.enabled == true"),
    "false": ("The condition that never holds.", "each step expect autocast.enabled == false"),
    "present": (
        "Whether an optional value is there.",
        "for p in parameters before optimizer.step when present(p.grad) expect finite(p.grad)",
    ),
    "old": (
        "The value at the begin of the window.",
        "for p in parameters during optimizer.step expect norm(p.data) < 2 * old(norm(p.data))",
    ),
    "previous": (
        "The value at the instance before.",
        "each step when step > 1 expect loss < 2 * previous(loss)",
    ),
    "first": (
        "The value when the subject came into being, or at the first instance.",
        f"{EACH_STEP} loss <= 2 * first(loss)",
    ),
    "changed": (
        "Whether the bits of a tensor differ between begin and end of the window.",
        "for p in parameters during optimizer.step when present(p.grad) expect changed(p.data)",
    ),
    "change": (
        "The tensor at the end of the window less that at its begin.",
        "for p in parameters during optimizer.step expect norm(change(p.data)) < 1",
    ),
    "difference": (
        "One tensor less another of its shape.",
        "for p in parameters for q in p.copies after optimizer.step"
        " expect norm(difference(q.data, p.data)) < norm(p.data)",
    ),
    "cast": (
        "The tensor in another dtype.",
        "for p in parameters after optimizer.step when present(p.main)"
        " expect digest(p.data) == digest(cast(p.main, p.data.dtype))",
    ),
    "transpose": (
        "Of lists of all ranks, element i is that of rank i for this rank.",
        "for c in calls(all_to_all) across c.group"
        " when present(c.input_split_sizes) and present(c.output_split_sizes)"
        " expect c.output_split_sizes == transpose(c.input_split_sizes)",
    ),
    "over": (
        "A fold over the instances of a time: `over: 20 steps`, `over: 1 epoch`.",
        f"{EACH_STEP} loss <= 3 * max(previous(loss), over: 20 steps)",
    ),
    **{
        each.name: (
            f"An action after `else`: it {each.words}.",
            "before optimizer.step expect finite(loss)",
        )
        for each in ACTIONS.values()
    },
}
"""Word of a rule -> its meaning, and an example."""

_RESPONSES: Mapping[str, str] = {
    "else": "warn",
    "then": "warn, then stop after 10 consecutive steps",
    "consecutive": "stop after 10 consecutive steps",
    "of": "stop after 5 of 20 steps",
}
"""Word that stands after `else` -> what the example says there."""

_TABLES: Mapping[EntryKind, Mapping[str, BuiltinFeature | BuiltinFold | BuiltinFunction]] = {
    "feature": FEATURES,
    "fold": FOLDS,
    "function": FUNCTIONS,
}


def entries_of_language() -> Iterator[VocabularyEntry]:
    """The entries of the language: the rows of its tables, then the words of a rule."""
    for kind, table in _TABLES.items():
        for row in table.values():
            yield VocabularyEntry(kind, row.name, row.meaning, row.example)
    for name, (meaning, example) in KEYWORDS.items():
        response = name if name in ACTIONS else _RESPONSES.get(name, "")
        yield VocabularyEntry("keyword", name, meaning, example, response=response)
