"""`equivalence`: which settings there are, what is compared, and within which tolerance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tspec.diagnostics import Related, did_you_mean
from tspec.resolve import types
from tspec.resolve.declared import EquivalenceDeclaration, LayoutDeclaration
from tspec.resolve.findings import Findings
from tspec.resolve.meshes import Reporter
from tspec.resolve.scope import Scope
from tspec.resolve.type_names import DEVICES, DTYPES, comparable
from tspec.resolve.types import Type
from tspec.syntax import nodes

SETTINGS: Mapping[str, Type] = {
    "phase": types.Enum(("train", "eval")),
    "batch": types.Enum(("whole", "single")),
    "gradients": types.Enum(("backward", "differences")),
    "seed": types.INT,
    "dtype": types.DTYPE,
    "device": types.DEVICE,
    "world_size": types.INT,
    "compiled": types.BOOL,
    "deterministic": types.BOOL,
    "checkpointing": types.BOOL,
}
"""Settings that every model has; others are axes of the layout's mesh, its flags, and what is swept."""

COMPARED = (
    "inputs", "outputs", "output_grads", "input_grads", "param_grads", "params", "buffers",
    "states", "losses", "predictions",
)  # fmt: skip

_TOLERANCES: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "noise": (0, ("perturb", "samples", "floor")),
    "ulp": (1, ()),
    "rtol": (1, ()),
    "atol": (1, ()),
}
_ORIGINS: Mapping[str, tuple[str, ...]] = {"generated": ("seed", "models"), "recorded": ()}


class _Trial:
    """One equivalence while it is checked: the settings that its conditions may name."""

    def __init__(self, layout: LayoutDeclaration | None, reporter: Reporter) -> None:
        self.reporter = reporter
        self.settings: dict[str, Type | None] = dict(SETTINGS)
        self.swept: dict[str, nodes.Sweep] = {}
        if layout is not None:
            self.settings.update({axis: types.INT for axis, _ in layout.mesh.axes})
            self.settings.update(dict.fromkeys(layout.flags, types.BOOL))


def lower_equivalence(
    node: nodes.Equivalence,
    layouts: Mapping[str, LayoutDeclaration | None],
    scope: Scope,
    findings: Findings,
) -> EquivalenceDeclaration | None:
    """The equivalence, or None where something is wrong, which is reported.

    `layouts` has None for a layout that is itself wrong.
    """
    reporter = Reporter(scope, findings)
    layout = None
    for clause in node.clauses:
        if isinstance(clause, nodes.UsesLayout):
            name = clause.name.text
            if name not in layouts:
                hint = did_you_mean(name, layouts)
                reporter.report("TS0175", f"there is no layout `{name}`", clause.name, hint)
            layout = layouts.get(name)
    trial = _Trial(layout, reporter)
    # Of a layout that is wrong the flags are not known, nor then which settings there are.
    closed = not any(isinstance(c, nodes.UsesLayout) for c in node.clauses) or layout is not None
    for clause in node.clauses:
        if isinstance(clause, nodes.Sweep):
            _check_sweep(clause, trial)
    for clause in node.clauses:
        _check_clause(clause, trial, closed)
    _check_sides(node, trial)
    if reporter.failed:
        return None
    return EquivalenceDeclaration(node.name.text, scope.unit.name, layout, scope.source, node)


def _check_clause(clause: nodes.Clause, trial: _Trial, closed: bool) -> None:
    match clause:
        case nodes.Reference(settings=settings) | nodes.Candidate(settings=settings):
            _check_settings(settings, trial, closed)
        case nodes.Require(condition=condition):
            _check_condition(condition, trial, pairs=False)
        case nodes.EqualWhen(condition=condition):
            _check_condition(condition, trial, pairs=True)
        case nodes.Compare(kinds=kinds):
            check_words(kinds, COMPARED, "compared", trial.reporter)
        case nodes.Run(length=length, origin=origin):
            check_length(length, trial.reporter)
            if origin is not None:
                _check_origin(origin, trial.reporter)
        case nodes.Within(tolerance=tolerance):
            _check_tolerance(tolerance, trial.reporter)


def _check_sides(node: nodes.Equivalence, trial: _Trial) -> None:
    kinds = [type(clause) for clause in node.clauses]
    sides = kinds.count(nodes.Reference), kinds.count(nodes.Candidate)
    if sides == (0, 0) and nodes.Sweep not in kinds:
        hint = "add `reference { ... }` and `candidate { ... }`, or `sweep`"
        trial.reporter.report("TS0183", "nothing says what is compared with what", node.name, hint)
    elif sides in ((1, 0), (0, 1)) and nodes.Sweep not in kinds:
        missing = "candidate" if sides[0] else "reference"
        trial.reporter.report("TS0183", f"this equivalence has no `{missing}`", node.name)
    if nodes.Cover in kinds and nodes.Sweep not in kinds:
        clause = next(each for each in node.clauses if isinstance(each, nodes.Cover))
        trial.reporter.report("TS0183", "`cover` chooses among sweeps, and there is none", clause)


# --- settings -----------------------------------------------------------------------------------


def _check_sweep(clause: nodes.Sweep, trial: _Trial) -> None:
    name = clause.name.text
    if name in trial.swept:
        there = Related(trial.swept[name].name.span, "the first one")
        trial.reporter.report("TS0104", f"`{name}` is swept twice", clause.name, None, (there,))
    trial.swept[name] = clause
    if not isinstance(clause.values, nodes.List) or not clause.values.items:
        hint = "write `in [1, 2, 4]`"
        trial.reporter.report("TS0184", "a sweep goes over a list of values", clause.values, hint)
        return
    values = clause.values.items
    if len(set(values)) < len(values):
        trial.reporter.report("TS0184", "a sweep takes each value once", clause.values)
    kinds = [_type_of(each) for each in values]
    of = SETTINGS.get(name) or kinds[0]
    for value, kind in zip(values, kinds, strict=True):
        if not _fits(of, value, kind):
            shown = trial.reporter.scope.source.slice(value.span)
            message = f"`{shown}` is no value of `{name}`"
            trial.reporter.report("TS0184", message, value, _values_hint(of, value))
    trial.settings[name] = of


def _check_settings(settings: Sequence[nodes.Setting], trial: _Trial, closed: bool) -> None:
    seen: set[str] = set()
    for setting in settings:
        name = setting.name.text
        if name in seen:
            trial.reporter.report("TS0104", f"`{name}` is set twice", setting.name)
        seen.add(name)
        if name not in trial.settings:
            if closed:
                hint = did_you_mean(name, trial.settings) or f"there are {_listed(trial.settings)}"
                trial.reporter.report("TS0185", f"there is no setting `{name}`", setting.name, hint)
            continue
        of = trial.settings[name]
        if of is not None and not _fits(of, setting.value, _type_of(setting.value)):
            shown = trial.reporter.scope.source.slice(setting.value.span)
            message = f"`{shown}` is no value of `{name}`"
            trial.reporter.report("TS0184", message, setting.value, _values_hint(of, setting.value))


def _type_of(value: nodes.Expr) -> Type | None:
    match value:
        case nodes.Integer():
            return types.INT
        case nodes.Float() | nodes.Percentage():
            return types.FLOAT
        case nodes.Boolean():
            return types.BOOL
        case nodes.String():
            return types.STRING
    return None


def _fits(of: Type | None, value: nodes.Expr, kind: Type | None) -> bool:
    if isinstance(value, nodes.Name):
        return value.text in _words(of)
    return of is not None and kind is not None and comparable(of, kind)


def _words(of: Type | None) -> frozenset[str]:
    if isinstance(of, types.Enum):
        return frozenset(of.members)
    return {types.DTYPE: DTYPES, types.DEVICE: DEVICES}.get(of, frozenset())  # type: ignore[arg-type]


def _values_hint(of: Type | None, value: nodes.Expr) -> str | None:
    if isinstance(value, nodes.Name):
        near = did_you_mean(value.text, _words(of))
        if near:
            return near
    return f"it is {of}" if of is not None else None


def _check_condition(node: nodes.Expr, trial: _Trial, *, pairs: bool) -> None:
    """Names in a condition are settings; in `equal when` those of the reference or candidate."""
    if isinstance(node, nodes.Comparison):
        for left, _, right in node.links:
            _check_sides_of(left, right, trial, pairs)
        return
    if isinstance(node, nodes.Name | nodes.Attribute):
        _setting_type(node, trial, pairs)
        return
    if isinstance(node, nodes.Call | nodes.Quantity | nodes.Index):
        trial.reporter.report("TS0177", "a condition is over settings and their values", node)
        return
    for child in node.children():
        if isinstance(child, nodes.Expr):
            _check_condition(child, trial, pairs=pairs)


def _check_sides_of(left: nodes.Expr, right: nodes.Expr, trial: _Trial, pairs: bool) -> None:
    first = _known_type(left, trial, pairs)
    second = _known_type(right, trial, pairs)
    of = first or second
    for node, kind in ((left, first), (right, second)):
        items = node.items if isinstance(node, nodes.List) else (node,)
        for value in items:
            is_word = isinstance(value, nodes.Name) and value.text in _words(of)
            if kind is not None or is_word or _fits(of, value, _type_of(value)):
                continue
            if isinstance(value, nodes.Name | nodes.Attribute):
                _setting_type(value, trial, pairs)
            elif of is not None and _type_of(value) is not None:
                shown = trial.reporter.scope.source.slice(value.span)
                trial.reporter.report("TS0184", f"`{shown}` is no value of {of}", value)
            else:
                _check_condition(value, trial, pairs=pairs)


def _known_type(node: nodes.Expr, trial: _Trial, pairs: bool) -> Type | None:
    """The type of a setting's name, without a word about what is none."""
    text = nodes.dotted_text(node)
    if text is None:
        return None
    if pairs:
        side, _, text = text.partition(".")
        if side not in ("reference", "candidate"):
            return None
    return trial.settings.get(text)


def _setting_type(node: nodes.Expr, trial: _Trial, pairs: bool) -> None:
    text = nodes.dotted_text(node) or ""
    side, _, name = text.partition(".")
    if pairs:
        if side not in ("reference", "candidate") or not name:
            hint = f"write `reference.{text}` or `candidate.{text}`"
            trial.reporter.report("TS0185", f"`{text}` is of neither side", node, hint)
            return
    else:
        name = text
    if name not in trial.settings:
        message = f"there is no setting `{name}`"
        trial.reporter.report("TS0185", message, node, did_you_mean(name, trial.settings))


# --- what is run and compared -------------------------------------------------------------------


def check_words(
    words: Sequence[nodes.Word], known: Sequence[str], what: str, reporter: Reporter
) -> None:
    """Report words that are none of those known, and those that stand twice."""
    seen: set[str] = set()
    for word in words:
        if word.text not in known:
            listed = f"there are {', '.join(f'`{each}`' for each in known)}"
            hint = did_you_mean(word.text, known) or listed
            reporter.report("TS0186", f"`{word.text}` is nothing that can be {what}", word, hint)
        elif word.text in seen:
            reporter.report("TS0104", f"`{word.text}` stands here twice", word)
        seen.add(word.text)


def check_length(length: nodes.Quantity, reporter: Reporter) -> None:
    """A run is so many whole steps or epochs long."""
    if length.unit not in ("step", "epoch"):
        message = f"a run is some steps or epochs long, not {length.unit}s"
        reporter.report("TS0138", message, length)
    elif not isinstance(length.amount, int) or length.amount < 1:
        reporter.report("TS0139", "a run is a whole number of steps long, from 1 on", length)


def _check_origin(node: nodes.Expr, reporter: Reporter) -> None:
    name = (nodes.dotted_text(node.function) or "") if isinstance(node, nodes.Call) else ""
    if not isinstance(node, nodes.Call) or name not in _ORIGINS:
        hint = 'write `from generated(seed: 1)` or `from recorded("runs/a")`'
        reporter.report("TS0187", "a run begins from what is generated or recorded", node, hint)
        return
    for argument in node.arguments:
        known = _ORIGINS[name]
        if argument.name is None and (known or not isinstance(argument.value, nodes.String)):
            reporter.report("TS0127", f"`{name}` takes {_listed(known) or 'a path'}", argument)
        elif argument.name is not None and argument.name.text not in known:
            near = did_you_mean(argument.name.text, known)
            message = f"`{name}` has no argument `{argument.name.text}:`"
            reporter.report("TS0124", message, argument.name, near)
        elif argument.name is not None and not isinstance(argument.value, nodes.Integer):
            reporter.report("TS0130", f"`{argument.name.text}:` takes an int", argument.value)


def _check_tolerance(node: nodes.Expr, reporter: Reporter) -> None:
    match node:
        case nodes.Integer() | nodes.Float() | nodes.Percentage():
            return
        case nodes.Arithmetic(left=left, operator="+" | "*" | "/", right=right):
            _check_tolerance(left, reporter)
            _check_tolerance(right, reporter)
            return
        case nodes.Call(function=function):
            name = nodes.dotted_text(function) or ""
            if name in _TOLERANCES:
                _check_arguments(node, name, reporter)
                return
            hint = did_you_mean(name, _TOLERANCES) or f"there are {_listed(_TOLERANCES)}"
            reporter.report("TS0123", "there is no such tolerance", function, hint)
            return
    message = "a tolerance is made of numbers and of what round-off amounts to"
    reporter.report("TS0188", message, node, f"there are {_listed(_TOLERANCES)}")


def _check_arguments(node: nodes.Call, name: str, reporter: Reporter) -> None:
    count, names = _TOLERANCES[name]
    values = [each.value for each in node.arguments if each.name is None]
    if len(values) != count:
        takes = f"{count} value" if count == 1 else f"{count} values"
        reporter.report("TS0127", f"`{name}` takes {takes}, not {len(values)}", node)
    for value in values:
        if name == "ulp":
            if not isinstance(value, nodes.Name) or value.text not in DTYPES:
                shown = reporter.scope.source.slice(value.span)
                hint = did_you_mean(shown, DTYPES)
                reporter.report("TS0135", f"`{shown}` is no dtype", value, hint)
        else:
            _check_tolerance(value, reporter)
    for argument in node.arguments:
        if argument.name is None:
            continue
        if argument.name.text not in names:
            hint = did_you_mean(argument.name.text, names)
            message = f"`{name}` has no argument `{argument.name.text}:`"
            reporter.report("TS0124", message, argument.name, hint)
        else:
            _check_tolerance(argument.value, reporter)


def _listed(names: Mapping[str, object] | Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
