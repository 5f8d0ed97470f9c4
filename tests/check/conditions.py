"""Random conditions, well typed by construction, as text over the vocabulary of `vocabulary.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tspec.builtin.features import FEATURES
from tspec.builtin.folds import OF_NUMBERS
from tspec.builtin.functions import FUNCTIONS


@dataclass(frozen=True)
class Place:
    """Where an expression stands, and what it may name."""

    variables: Mapping[str, str] = field(default_factory=dict)
    window: str = "each"
    event: str = ""
    clause: str = "expect"
    across: bool = False
    folded: bool = False
    unit: str = "step"
    """In which look-backs are counted."""

    def of(self, kind: str) -> list[str]:
        """The variables of a kind."""
        return [name for name, each in self.variables.items() if each == kind]

    @property
    def has_start(self) -> bool:
        """`old` has a meaning."""
        return self.window not in ("before", "after")

    @property
    def has_calls(self) -> bool:
        """Calls lie in the window, or in the step up to the instant, and are over."""
        return not (self.window == "during" and self.clause == "when")


Make = Callable[[Random, Place, int], str]
NUMBERS = ("0", "0.5", "1", "1.0", "2", "2.5", "50%", "3")
WHOLE = ("0", "1", "2", "3")


def _pick(draw: Random, makers: Sequence[Make], place: Place, depth: int) -> str:
    return makers[draw.randint(0, len(makers) - 1)](draw, place, depth)


FLOATS = [row.name for row in FEATURES.values() if row.kind == "float"]
COUNTS = [row.name for row in FEATURES.values() if row.bounds == "count"]
TEXTS = ("text", "text")
OF_A_NUMBER = {
    result: [
        row.name for row in FUNCTIONS.values() if (row.takes, row.result) == (("number",), result)
    ]
    for result in ("float", "number", "int")
}
"""Functions of a number by what they give."""


def word(draw: Random, *words: str) -> str:
    return draw.choice(words)


# --- tensors ------------------------------------------------------------------------------------


def tensors(place: Place) -> list[str]:
    """Single tensors that are surely there, but for what was not recorded."""
    found = [f"{name}.data" for name in place.of("parameter")]
    found += place.of("tensor")
    found += [f"{name}.inputs[0]" for name in place.of("forward")]
    if place.event == "forward":
        found += ["forward.inputs[0]"]
    return found


def _many_tensors(draw: Random, place: Place) -> str:
    found = ["parameters.data", "parameters.grad", "parameters(requires_grad: true).data"]
    found += [f"{name}.parameters.grad" for name in place.of("module")]
    found += [f"{name}.tensors" for name in place.of("batch")]
    found += [f"{name}.inputs" for name in place.of("forward")]
    if place.has_calls:
        found += ["calls(forward).output"]
    return word(draw, *found)


def _any_tensor(draw: Random, place: Place) -> str:
    single = tensors(place)
    if single and draw.randint(0, 3):
        return word(draw, *single)
    return _many_tensors(draw, place)


# --- numbers ------------------------------------------------------------------------------------


def _looked_back(draw: Random, place: Place, make: Make, depth: int, folds: Sequence[str]) -> str:
    """A value at another moment, or folded over time."""
    inner = make(draw, place, depth - 1)
    ways = ["previous({})", "first({})"]
    ways += ["old({})"] * 2 if place.has_start else []
    for fold in folds:
        count = draw.randint(1, 3)
        ways.append(f"{fold}({{}}, over: {count} {units(place.unit, count)})")
    return word(draw, *ways).format(inner)


def units(unit: str, count: int) -> str:
    if count == 1:
        return unit
    return f"{unit}es" if unit == "microbatch" else f"{unit}s"


def _over_group(draw: Random, place: Place, make: Make, depth: int, folds: Sequence[str]) -> str:
    inner = make(draw, replace(place, folded=True), depth - 1)
    return f"{word(draw, *folds)}({inner})"


def number(draw: Random, place: Place, depth: int) -> str:
    """A float."""
    makers: list[Make] = [_number_leaf, _number_leaf]
    if depth > 0:
        makers += [_reckoned, _reckoned, _of_list, _of_list]
        makers.append(lambda d, p, n: _looked_back(d, p, number, n, OF_NUMBERS))
        if place.across and not place.folded:
            makers.append(lambda d, p, n: _over_group(d, p, number, n, OF_NUMBERS))
            makers.append(lambda d, p, n: _over_group(d, p, number, n, OF_NUMBERS))
    return _pick(draw, makers, place, depth)


def _number_leaf(draw: Random, place: Place, depth: int) -> str:
    found = ["loss"] * 2
    found += [f"{name}.lr" for name in place.of("parameter")] * 2
    for tensor in tensors(place):
        found += [f"{each}({tensor})" for each in FLOATS]
        found += [f"zeros({tensor})"]
    if place.event == "update":
        found += ["update.lr"] * 3
    elif place.has_calls:
        found += ["update.lr"]
    if (
        place.clause == "expect"
        and place.window in ("after", "during")
        and place.event == "forward"
    ):
        found += ["forward.cost"] * 2
    if place.window == "calls" or place.has_calls:
        found += [f"{name}.cost" for name in place.of("forward")] * 2
        found += [f"{name}.lr" for name in place.of("update")] * 2
    if draw.randint(0, 5) == 0:
        return f"{word(draw, *FLOATS, 'zeros')}({_many_tensors(draw, place)})"
    return word(draw, *found)


def _reckoned(draw: Random, place: Place, depth: int) -> str:
    left = number(draw, place, depth - 1)
    way = draw.randint(0, 6)
    if way == 0:
        return f"{word(draw, *OF_A_NUMBER['float'], *OF_A_NUMBER['number'])}({left})"
    if way == 1:
        return f"-{left}" if not left.startswith("-") else left
    right = word(draw, *NUMBERS, "ulp(float32)") if way < 4 else number(draw, place, depth - 1)
    return f"({left} {word(draw, '+', '-', '*', '/')} {right})"


def _of_list(draw: Random, place: Place, depth: int) -> str:
    found = ["parameters.lr", "modules.parameters.lr", "modules.parameters(order: 1).lr"]
    for name in place.of("module"):
        found += [f"{name}.parameters.lr", f"{name}.parameters(requires_grad: true).lr"]
    if place.has_calls:
        found += ["calls(forward).cost", "calls(update).lr", "calls(update, ok: true).lr"]
    return f"{word(draw, *OF_NUMBERS)}({word(draw, *found)})"


def whole(draw: Random, place: Place, depth: int) -> str:
    """An int."""
    found = ["step", "run.step", "microbatch", "epoch"]
    found += [f"{name}.order" for name in place.of("parameter")] * 2
    found += [f"{name}.size" for name in place.of("batch")] * 2
    found += [f"{each}({tensor})" for tensor in tensors(place)[:1] for each in COUNTS]
    found += [f"{each}({_many_tensors(draw, place)})" for each in COUNTS]
    found += [f"count({name}.tensors)" for name in place.of("batch")]
    found += ["count(parameters)", "count(parameters.grad)", "count(modules(training: true))"]
    if place.has_calls:
        found += [
            "count(calls(forward))",
            "count(calls(update, ok: true))",
            "count(calls(save, update))",
        ]
        found += [f"count(calls(forward, module: {name}))" for name in place.of("module")] * 2
    plain = word(draw, *found)
    way = draw.randint(0, 6) if depth > 0 else 9
    if way == 0:
        return _looked_back(draw, place, whole, depth, ("min", "max", "sum"))
    if way == 1:
        return f"({plain} {word(draw, '+', '-', '*')} {word(draw, *WHOLE)})"
    if way == 2:
        return f"{word(draw, *OF_A_NUMBER['int'])}({number(draw, place, depth - 1)})"
    if way == 3 and place.across and not place.folded:
        return _over_group(draw, place, condition, depth, ("count",))
    if way == 4:
        count = draw.randint(1, 3)
        over = f"{count} {units(place.unit, count)}"
        return f"count({condition(draw, place, depth - 1)}, over: {over})"
    return plain


# --- conditions ---------------------------------------------------------------------------------


def condition(draw: Random, place: Place, depth: int) -> str:
    """A bool."""
    makers: list[Make] = [*[_compared] * 5, _bool_leaf, _bool_leaf, _within, _within, _seldom]
    makers += [_of_bools, _alike_in_list]
    if place.across and not place.folded:
        makers += [_alike, _alike, _alike]
    if place.has_start and place.clause == "expect":
        makers.append(_changed)
    if depth > 0:
        makers += [_joined, _joined, _alike_in_time]
        makers.append(lambda d, p, n: _looked_back(d, p, condition, n, ("any", "all")))
    return _pick(draw, makers, place, depth)


def _compared(draw: Random, place: Place, depth: int) -> str:
    make = number if draw.randint(0, 2) else whole
    left = make(draw, place, depth - 1)
    constants = NUMBERS if make is number else WHOLE
    right = make(draw, place, depth - 1) if draw.randint(0, 2) == 0 else word(draw, *constants)
    return f"{left} {word(draw, '==', '!=', '<', '<=', '>', '>=')} {right}"


def _bool_leaf(draw: Random, place: Place, depth: int) -> str:
    found = ["enabled", "phase == train", "finite(loss)", f"finite({_many_tensors(draw, place)})"]
    found += [f"finite({tensor})" for tensor in tensors(place)]
    found += [f"{tensor}.dtype == float32" for tensor in tensors(place)]
    found += [f'{tensor}.device.type == "cuda"' for tensor in tensors(place)]
    for name in place.of("parameter"):
        found += [f"present({name}.grad)", f"{name}.requires_grad", f"not {name}.requires_grad"]
        found += [f"present({name}.grad) and {_of_grad(draw, name)}"] * 2
        found += [
            f'matches({name}.label, "^b|w.i")',
            *_of_text(f"{name}.label"),
        ]
        found += [f"isinstance({name}.module, torch.nn.Module)", f"{name}.module.training"]
    for name in place.of("module"):
        found += [f"{name}.training", f"isinstance({name}, [torch.nn.Linear, torch.nn.ReLU])"]
        found += [f"present({name}.next) and {name}.next.training"]
        found += [f'present({name}.attributes["width"]) and {name}.attributes["width"] > 1']
        found += [f'present({name}.attributes["kind"]) and {name}.attributes["kind"] == "x"']
    for name in place.of("forward"):
        found += [
            f"present({name}.limit) and {name}.limit > 0",
            f"isinstance({name}.module, torch.nn.Linear)",
        ]
        if place.window == "calls" or place.has_calls:
            found += [f"present({name}.output) and finite({name}.output)"]
    found += [f"{name}.lr > 0" for name in place.of("update")]
    found += [f"divisible({name}.size, by: 2)" for name in place.of("batch")]
    if place.event == "update" and place.window != "before" and place.clause == "expect":
        found += ["update.ok"] * 3
    return word(draw, *found)


def _of_text(text: str) -> list[str]:
    """Conditions with the functions of two texts."""
    calls = {row: f'{row.name}({text}, "t")' for row in FUNCTIONS.values() if row.takes == TEXTS}
    found = [call for row, call in calls.items() if row.result == "bool"]
    return found + [
        test
        for row, call in calls.items()
        if row.result == "string"
        for test in (f'{call} == "weightt"', f'endswith({call}, "{text[0]}t")')
    ]


def _of_grad(draw: Random, name: str) -> str:
    plain = [f"norm({name}.grad) > 1", f"zeros({name}.grad) < 100%", f"finite({name}.grad)"]
    return word(draw, *plain, f"min({name}.grad) <= max({name}.grad)")


def _within(draw: Random, place: Place, depth: int) -> str:
    found = [f"{word(draw, 'step', 'epoch')} in [1, 2, epoch]"]
    for name in place.of("parameter"):
        found += [
            f"{name} in modules.parameters",
            f'"y" in {name}.names',
            f"{name} in {name}.module.parameters",
        ]
        found += [f'{name}.label in ["bias", "weight"]', f"{name}.names == first({name}.names)"]
        found += [
            f"[{name}.lr, loss] == [{name}.lr, 1.0]",
            f"{name}.names in modules.parameters.names",
        ]
    for name in place.of("module"):
        found += [
            f"{name}.parameters in parameters",
            f"first({name}.attributes) in {name}.attributes",
        ]
        found += [
            f"{name}.parameters == previous({name}.parameters)",
            f'"width" in {name}.attributes',
        ]
    for name in place.of("tensor"):
        found += [f"2 in {name}.shape", f"{name}.shape[0] == 2", f"count({name}.shape) > 1"]
    for name in place.of("forward"):
        found += [f"{name}.inputs[0] is {name}.inputs[-1]", f"{name}.inputs[0].shape[-1] == 3"]
        if place.across and not place.folded:
            found += [
                f"{name}.splits == transpose({name}.splits)",
                f"sum(transpose({name}.splits)) == 3",
            ]
    return word(draw, *found)


def _seldom(draw: Random, place: Place, depth: int) -> str:
    """What would otherwise hardly come up."""
    left = number(draw, place, depth - 1)
    found = [f"{each}({left}) <= 1" for each in (*OF_A_NUMBER["float"], *OF_A_NUMBER["number"])]
    found += [f"{left} > ulp({each})" for each in ("bfloat16", "float64")]
    for name in place.of("forward"):
        found += [f"{name}.inputs[0] is {name}.inputs[-1]"] * 3
        if place.across and not place.folded:
            found += [f"{name}.splits == transpose({name}.splits)"] * 5
    for name in place.of("module"):
        found += [f"isinstance({name}, torch.nn.Linear)"] * 2
    for name in place.of("batch"):
        found += [f"divisible({name}.size, by: 2)"] * 2
    if place.across and not place.folded:
        found += [
            _over_group(draw, place, number, depth, ("sum", "mean", "max", "std")) + " > 1"
        ] * 3
    return word(draw, *found)


def _of_bools(draw: Random, place: Place, depth: int) -> str:
    found = [
        "parameters.requires_grad",
        "modules.training",
        "modules(training: true).parameters.requires_grad",
    ]
    found += [f"{name}.parameters.requires_grad" for name in place.of("module")]
    found += [f"divisible({name}.inputs[0].shape, by: 2)" for name in place.of("forward")]
    if place.has_calls:
        found += ["calls(update).ok"]
    return f"{word(draw, 'any', 'all')}({word(draw, *found)})"


def _alike_in_list(draw: Random, place: Place, depth: int) -> str:
    found = [
        "parameters.lr",
        "parameters.label",
        "modules.class",
        "parameters.order",
    ]
    if not place.across:
        found += ["[loss, 1.0]", "[step, epoch]"]
    found += [_many_tensors(draw, place)] * 2
    return f"{word(draw, 'same', 'distinct')}({word(draw, *found)})"


def _value(draw: Random, place: Place, depth: int) -> str:
    """Something to be compared between ranks or instants."""
    single = tensors(place)
    way = draw.randint(0, 4)
    if way < 2 and single:
        return word(draw, *single)
    if way == 2:
        return number(draw, place, depth - 1)
    if way == 3:
        return f"digest({_any_tensor(draw, place)})"
    found = ["phase", "step", "run.step", "enabled"]
    found += [f"{name}.label" for name in place.of("parameter")]
    if place.folded:
        found += [f"[{name}.lr, 1.0, loss]" for name in place.of("parameter")]
    return word(draw, *found)


def _alike(draw: Random, place: Place, depth: int) -> str:
    inside = replace(place, folded=True)
    if draw.randint(0, 3) == 0:
        return _over_group(draw, place, condition, depth, ("any", "all"))
    alike = f"{word(draw, 'same', 'same', 'distinct')}({_value(draw, inside, depth)})"
    if place.has_start and draw.randint(0, 4) == 0:
        return f"old({alike})"
    return alike


def _alike_in_time(draw: Random, place: Place, depth: int) -> str:
    count = draw.randint(1, 3)
    value = _value(draw, place, depth)
    return f"{word(draw, 'same', 'distinct')}({value}, over: {count} {units(place.unit, count)})"


def _changed(draw: Random, place: Place, depth: int) -> str:
    found = tensors(place) + [f"{name}.grad" for name in place.of("parameter")] or ["loss"]
    return f"{word(draw, '', 'not ')}changed({word(draw, *found)})"


def _joined(draw: Random, place: Place, depth: int) -> str:
    left, right = (condition(draw, place, depth - 1) for _ in range(2))
    way = draw.randint(0, 4)
    if way == 0:
        return f"not ({left})"
    word = ("and", "and", "or", "implies")[way - 1]
    return f"(({left}) {word} ({right}))"
