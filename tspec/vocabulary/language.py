"""The entries of the language itself: features of tensors, folds, functions, and the words of a rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tspec.builtin.actions import ACTIONS
from tspec.vocabulary.entries import EntryKind, VocabularyEntry

EACH_STEP = "each step expect"
EACH_PARAMETER = "for p in parameters after optimizer.step expect"

FEATURES: Mapping[str, tuple[str, str]] = {
    "digest": (
        "A hash of a tensor's elements and their order.",
        f"{EACH_PARAMETER} digest(p.data) != previous(digest(p.data))",
    ),
    "norm": ("The Euclidean norm.", f"{EACH_PARAMETER} norm(p.data) < 1e6"),
    "mean": ("The mean of the elements.", f"{EACH_PARAMETER} abs(mean(p.data)) < 10"),
    "std": ("The population's standard deviation.", f"{EACH_PARAMETER} std(p.data) > 0"),
    "min": ("The smallest element; NaN if one is.", f"{EACH_PARAMETER} min(p.data) > -100"),
    "max": ("The largest element; NaN if one is.", f"{EACH_PARAMETER} max(p.data) < 100"),
    "sum": ("The sum of the elements.", f"{EACH_PARAMETER} abs(sum(p.data)) < 1e6"),
    "finite": (
        "Whether no element is NaN or infinite; also of a number.",
        f"{EACH_PARAMETER} finite(p.data)",
    ),
    "zeros": ("The fraction of exact zeros.", f"{EACH_PARAMETER} zeros(p.data) < 90%"),
    "numel": ("The number of elements.", f"{EACH_PARAMETER} numel(p.data) > 0"),
    "absmax": ("The largest absolute value.", f"{EACH_PARAMETER} absmax(p.data) < 100"),
    "nans": ("How many elements are NaN.", f"{EACH_PARAMETER} nans(p.data) == 0"),
    "shape": ("The sizes of the dimensions.", f"{EACH_PARAMETER} count(p.data.shape) <= 4"),
    "dtype": ("The type of the elements.", f"{EACH_PARAMETER} p.data.dtype == float32"),
    "device": (
        "Where the elements are; `type` and `index` are its parts.",
        f'{EACH_PARAMETER} p.data.device.type == "cuda"',
    ),
    "memory_format": (
        "The order of the dimensions in memory.",
        f"{EACH_PARAMETER} p.data.memory_format == channels_last",
    ),
    "requires_grad": (
        "Whether autograd records operations on it.",
        f"{EACH_PARAMETER} p.data.requires_grad",
    ),
    "name": (
        "The canonical name of the parameter or buffer that it is.",
        f'{EACH_PARAMETER} p.data.name != ""',
    ),
}
"""Feature -> what it is, and an example."""

FOLDS: Mapping[str, tuple[str, str]] = {
    "same": (
        "Whether no two values differ in their bits.",
        "for p in parameters across dp after optimizer.step expect same(p.data)",
    ),
    "distinct": (
        "Whether no two values are the same.",
        "across dp after fetch expect distinct(digest(fetch.tensors))",
    ),
    "spread": (
        "The largest value less the smallest.",
        "across dp each step expect spread(loss) < 1",
    ),
    "min": ("The smallest value.", f"{EACH_STEP} min(loss, over: 20 steps) < 10"),
    "max": ("The largest value.", f"{EACH_STEP} loss <= 3 * max(previous(loss), over: 20 steps)"),
    "sum": ("The sum of the values.", f"{EACH_STEP} sum([loss, 1]) > 0"),
    "mean": ("The mean of the values.", f"{EACH_STEP} mean(loss, over: 20 steps) < 10"),
    "std": (
        "The population's standard deviation.",
        f"{EACH_STEP} std(loss, over: 20 steps) < 10",
    ),
    "median": (
        "The middle value in order.",
        f"{EACH_STEP} loss <= 3 * median(previous(loss), over: 20 steps)",
    ),
    "count": (
        "The number of values; of conditions the number that is true.",
        f"{EACH_STEP} count(calls(backward)) == 1",
    ),
    "any": ("Whether some condition is true.", f"{EACH_STEP} any(loss < 1, over: 20 steps)"),
    "all": ("Whether all conditions are true.", f"{EACH_STEP} all(loss < 10, over: 20 steps)"),
}
"""Fold -> what it is, and an example. It folds a list, the ranks of a group, or a time (`over`)."""

FUNCTIONS: Mapping[str, tuple[str, str]] = {
    "abs": ("The absolute value.", f"{EACH_STEP} abs(loss) < 10"),
    "sqrt": ("The square root; NaN of a negative number.", f"{EACH_STEP} sqrt(loss) < 10"),
    "log": ("The natural logarithm.", f"{EACH_STEP} loss <= 2 * log(1000)"),
    "exp": ("The exponential function.", f"{EACH_STEP} exp(loss) < 1e6"),
    "ceil": ("The next int that is not smaller.", f"{EACH_STEP} ceil(loss) < 10"),
    "floor": ("The next int that is not larger.", f"{EACH_STEP} floor(loss) < 10"),
    "round": ("The nearest int, half to even.", f"{EACH_STEP} round(loss) < 10"),
    "ulp": (
        "The gap between 1 and the next number of a dtype.",
        f"{EACH_STEP} loss > ulp(float32)",
    ),
    "endswith": (
        "Whether a string ends with another.",
        'for p in parameters after optimizer.step when endswith(p.name, "bias") expect finite(p.data)',
    ),
    "startswith": (
        "Whether a string begins with another.",
        'for p in parameters after optimizer.step when startswith(p.name, "head") expect finite(p.data)',
    ),
    "matches": (
        "Whether a regular expression, as in Python, is found in a string.",
        'for p in parameters after optimizer.step when matches(p.name, "[0-9]+") expect finite(p.data)',
    ),
    "join": (
        "A string followed by another.",
        'for p in parameters after save expect join("model/", p.name) in save.names',
    ),
    "divisible": (
        "Whether a number, or each of a list, leaves no remainder.",
        f"{EACH_PARAMETER} divisible(numel(p.data), by: 8)",
    ),
    "isinstance": (
        "Whether a module or another object is of a class, or of one of a list.",
        "for m in modules each step when isinstance(m, torch.nn.Conv2d) expect m.training",
    ),
}
"""Function -> what it is, and an example."""

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
"""Word of a rule -> what it means, and an example."""

_TABLES: Mapping[EntryKind, Mapping[str, tuple[str, str]]] = {
    "feature": FEATURES,
    "fold": FOLDS,
    "function": FUNCTIONS,
    "keyword": KEYWORDS,
}


def entries_of_language() -> Iterator[VocabularyEntry]:
    """The entries of the language, table by table."""
    for kind, table in _TABLES.items():
        for name, (meaning, example) in table.items():
            yield VocabularyEntry(
                kind, name, meaning, example, action=name if name in ACTIONS else "warn"
            )
