"""`equivalence`: the settings of both sides, the compared tensors, and the tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeVar, get_args

from tspec.diagnostics import Related, did_you_mean
from tspec.resolve.expressions.over_settings import (
    constant,
    is_word,
    setting_names,
    strays,
    typed_condition,
)
from tspec.resolve.findings import Findings
from tspec.resolve.names.reporter import Reporter
from tspec.resolve.names.scope import Scope
from tspec.resolve.names.type_names import comparable, words_of
from tspec.resolve.program import types
from tspec.resolve.program.rules import Constant, Expr
from tspec.resolve.program.sharding import LayoutDeclaration
from tspec.resolve.program.trials import (
    EquivalenceDeclaration,
    EquivalenceSpans,
    Generated,
    Recorded,
    Setting,
    Sweep,
)
from tspec.resolve.program.types import Type
from tspec.resolve.trials.inputs import lower_inputs
from tspec.resolve.trials.runs import check_words, listed, lower_length
from tspec.resolve.trials.tolerances import lower_tolerance
from tspec.source import Span
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
"""Settings that every model has. Others are axes of the layout's mesh, its flags, and swept names."""

COMPARED = (
    "inputs", "outputs", "output_grads", "input_grads", "param_grads", "params", "buffers",
    "gradient_norms", "states", "losses", "predictions",
)  # fmt: skip

STORED = ("sketch",)
"""Forms that replace a tensor's elements in a recording."""

SIDES = ("reference", "candidate")
_ORIGINS: Mapping[str, tuple[str, ...]] = {"generated": ("seed", "models"), "recorded": ()}

C = TypeVar("C", bound=nodes.Clause)


class _Trial:
    """One equivalence while it is lowered: its clauses, and the settings that they may name."""

    def __init__(
        self, node: nodes.Equivalence, layout: LayoutDeclaration | None, reporter: Reporter
    ) -> None:
        self.node = node
        self.layout = layout
        self.reporter = reporter
        self.settings: dict[str, Type] = dict(SETTINGS)
        if layout is not None:
            self.settings.update(dict.fromkeys(layout.mesh.all_axes, types.INT))
            self.settings.update(dict.fromkeys(layout.flags, types.BOOL))

    def clauses(self, kind: type[C]) -> list[C]:
        """Its clauses of a kind."""
        return [clause for clause in self.node.clauses if isinstance(clause, kind)]

    @property
    def closed(self) -> bool:
        """True if all settings are known. The flags of a faulty layout are not."""
        return self.layout is not None or not self.clauses(nodes.UsesLayout)

    @property
    def of_pairs(self) -> dict[str, Type]:
        """The settings of both sides, by the names that `equal when` gives them."""
        return {f"{side}.{name}": of for side in SIDES for name, of in self.settings.items()}


def lower_equivalence(
    node: nodes.Equivalence,
    layouts: Mapping[str, LayoutDeclaration | None],
    scope: Scope,
    findings: Findings,
) -> EquivalenceDeclaration | None:
    """Type an equivalence. None if it has errors, which are reported.

    `layouts` has None for a layout with errors.
    """
    reporter = Reporter(scope, findings)
    trial = _Trial(node, _layout(node, layouts, reporter), reporter)
    sweeps = tuple(_sweeps(trial))
    sides = {kind: _side(trial, kind) for kind in (nodes.Reference, nodes.Candidate)}
    require = [_condition(each.condition, trial) for each in trial.clauses(nodes.Require)]
    equal = [_condition_of_pairs(each.condition, trial) for each in trial.clauses(nodes.EqualWhen)]
    length, origin = None, None
    for run in trial.clauses(nodes.Run):
        length = lower_length(run.length, reporter)
        origin = None if run.origin is None else _origin(run.origin, reporter)
    given = trial.clauses(nodes.GeneratedInput)
    inputs = tuple(lower_inputs(given, origin, trial.layout, reporter))
    for compare in trial.clauses(nodes.Compare):
        check_words(compare.kinds, COMPARED, "compared", reporter)
    for store in trial.clauses(nodes.Store):
        check_words((store.what,), STORED, "stored", reporter)
    within = [lower_tolerance(each.tolerance, reporter) for each in trial.clauses(nodes.Within)]
    _check_sides(trial)
    tolerance = within[0] if within else None
    if reporter.failed or not trial.closed or tolerance is None:
        return None
    return EquivalenceDeclaration(
        node.name.text,
        scope.unit.name,
        trial.layout,
        sides[nodes.Reference],
        sides[nodes.Candidate],
        sweeps,
        tuple(each for each in require if each is not None),
        tuple(each for each in equal if each is not None),
        next((_COVERAGE[each.coverage.text] for each in trial.clauses(nodes.Cover)), None),
        length,
        origin,
        inputs,
        tuple(kind.text for each in trial.clauses(nodes.Compare) for kind in each.kinds),
        tolerance,
        bool(trial.clauses(nodes.Store)),
        bool(trial.clauses(nodes.Localize)),
        scope.source,
        node.name.span,
        _spans(trial),
    )


def _spans(trial: _Trial) -> EquivalenceSpans:
    """The spans of its clauses."""
    runs = trial.clauses(nodes.Run)

    def of(found: Sequence[nodes.Node | None]) -> Span:
        return next((each.span for each in found if each is not None), trial.node.name.span)

    return EquivalenceSpans(
        reference=of(trial.clauses(nodes.Reference)),
        candidate=of(trial.clauses(nodes.Candidate)),
        length=of([each.length for each in runs]),
        origin=of([each.origin for each in runs]),
        compare=of(trial.clauses(nodes.Compare)),
        within=of(trial.clauses(nodes.Within)),
    )


Coverage = Literal["all", "pairs", "triples"]
_COVERAGE: Mapping[str, Coverage] = {each: each for each in get_args(Coverage)}


def _layout(
    node: nodes.Equivalence, layouts: Mapping[str, LayoutDeclaration | None], reporter: Reporter
) -> LayoutDeclaration | None:
    layout = None
    for clause in node.clauses:
        if isinstance(clause, nodes.UsesLayout):
            name = clause.name.text
            if name not in layouts and name not in reporter.scope.unit.broken:
                hint = did_you_mean(name, layouts)
                reporter.report("TS0175", f"there is no layout `{name}`", clause.name, hint)
            layout = layouts.get(name)
    return layout


def _check_sides(trial: _Trial) -> None:
    reporter, head = trial.reporter, trial.node.name
    sides = len(trial.clauses(nodes.Reference)), len(trial.clauses(nodes.Candidate))
    swept = bool(trial.clauses(nodes.Sweep))
    if sides == (0, 0) and not swept:
        hint = "add `reference { ... }` and `candidate { ... }`, or `sweep`"
        reporter.report("TS0183", "nothing says what is compared with what", head, hint)
    elif sides in ((1, 0), (0, 1)) and not swept:
        missing = "candidate" if sides[0] else "reference"
        reporter.report("TS0183", f"this equivalence has no `{missing}`", head)
    for sweep in trial.clauses(nodes.Sweep):
        name = sweep.name.text
        of_reference = [each.settings for each in trial.clauses(nodes.Reference)]
        of_candidate = [each.settings for each in trial.clauses(nodes.Candidate)]
        said = [
            {setting.name.text for settings in side for setting in settings}
            for side in (of_reference, of_candidate)
        ]
        if all(name in side for side in said):
            message = f"`{name}` is swept, and both sides set it"
            reporter.report("TS0104", message, sweep.name, "leave it out of one side")
    for clause in trial.clauses(nodes.Cover):
        if not swept:
            reporter.report("TS0183", "`cover` chooses among sweeps, and there is none", clause)


# --- settings -----------------------------------------------------------------------------------


def _sweeps(trial: _Trial) -> Iterator[Sweep]:
    seen: dict[str, nodes.Sweep] = {}
    reporter = trial.reporter
    for clause in trial.clauses(nodes.Sweep):
        name = clause.name.text
        if name in seen:
            there = Related(seen[name].name.span, "the first one")
            reporter.report("TS0104", f"`{name}` is swept twice", clause.name, None, (there,))
        seen[name] = clause
        if not isinstance(clause.values, nodes.List) or not clause.values.items:
            hint = "write `in [1, 2, 4]`"
            message = "a sweep goes over a list of values"
            reporter.report("TS0184", message, clause.values, hint)
            continue
        items = clause.values.items
        if len(set(items)) < len(items):
            reporter.report("TS0184", "a sweep takes each value once", clause.values)
        first = constant(items[0], trial.settings, reporter.scope, SETTINGS.get(name))
        of = SETTINGS.get(name) or (first.type if first is not None else None)
        if of is not None:
            trial.settings[name] = of
        values = [_value(name, each, of, trial) for each in items]
        yield Sweep(name, tuple(each for each in values if each is not None))


def _side(
    trial: _Trial, kind: type[nodes.Reference | nodes.Candidate]
) -> tuple[Setting, ...] | None:
    clauses = trial.clauses(kind)
    if not clauses:
        return None
    return tuple(setting for clause in clauses for setting in _settings(clause.settings, trial))


def _settings(settings: Sequence[nodes.Setting], trial: _Trial) -> Iterator[Setting]:
    seen: set[str] = set()
    for setting in settings:
        name = setting.name.text
        if name in seen:
            trial.reporter.report("TS0104", f"`{name}` is set twice", setting.name)
        seen.add(name)
        if name in trial.settings:
            value = _value(name, setting.value, trial.settings[name], trial)
            if value is not None:
                yield Setting(name, value)
        elif trial.closed:
            hint = did_you_mean(name, trial.settings) or f"there are {listed(trial.settings)}"
            trial.reporter.report("TS0185", f"there is no setting `{name}`", setting.name, hint)


def _value(name: str, node: nodes.Expr, of: Type | None, trial: _Trial) -> Constant | None:
    """A value of a setting; one of another type is reported."""
    found = constant(node, trial.settings, trial.reporter.scope, of)
    if found is not None and of is not None and comparable(of, found.type):
        return found
    shown = trial.reporter.scope.source.slice(node.span)
    hint = None if of is None else f"it is {of}"
    if isinstance(node, nodes.Name):
        hint = did_you_mean(node.text, words_of(of)) or hint
    trial.reporter.report("TS0184", f"`{shown}` is no value of `{name}`", node, hint)
    return None


# --- conditions ---------------------------------------------------------------------------------


def _condition(node: nodes.Expr, trial: _Trial) -> Expr | None:
    """A condition over settings."""
    known = trial.settings
    unknown = [each for each in _names(node, trial) if nodes.dotted_text(each) not in known]
    for each in unknown:
        text = nodes.dotted_text(each) or ""
        hint = did_you_mean(text, known)
        trial.reporter.report("TS0185", f"there is no setting `{text}`", each, hint)
    return _typed(node, known, trial, bool(unknown))


def _condition_of_pairs(node: nodes.Expr, trial: _Trial) -> Expr | None:
    """A condition over the settings of the reference and the candidate."""
    known = trial.of_pairs
    unknown = [each for each in _names(node, trial) if nodes.dotted_text(each) not in known]
    for each in unknown:
        text = nodes.dotted_text(each) or ""
        side, _, name = text.partition(".")
        if side in SIDES and name:
            hint = did_you_mean(name, trial.settings)
            trial.reporter.report("TS0185", f"there is no setting `{name}`", each, hint)
        else:
            hint = f"write `reference.{text}` or `candidate.{text}`"
            trial.reporter.report("TS0185", f"`{text}` is of neither side", each, hint)
    return _typed(node, known, trial, bool(unknown))


def _names(node: nodes.Expr, trial: _Trial) -> Iterator[nodes.Name | nodes.Attribute]:
    """The names of a condition that are to be settings."""
    lets = trial.reporter.scope.lets
    for each in setting_names(node):
        if not is_word(each, trial.settings) and nodes.dotted_text(each) not in lets:
            yield each


def _typed(
    node: nodes.Expr, settings: Mapping[str, Type], trial: _Trial, unknown: bool
) -> Expr | None:
    others = list(strays(node))
    for each in others:
        message = "a condition is over settings and their values"
        trial.reporter.report("TS0177", message, each)
    if others or unknown or not trial.closed:
        return None
    return typed_condition(node, settings, trial.reporter)


# --- where a run begins -------------------------------------------------------------------------


def _origin(node: nodes.Expr, reporter: Reporter) -> Generated | Recorded | None:
    name = (nodes.dotted_text(node.function) or "") if isinstance(node, nodes.Call) else ""
    if not isinstance(node, nodes.Call) or name not in _ORIGINS:
        hint = 'write `from generated(seed: 1)` or `from recorded("runs/a")`'
        reporter.report("TS0187", "a run begins from what is generated or recorded", node, hint)
        return None
    known = _ORIGINS[name]
    numbers: dict[str, int] = {}
    path = ""
    for argument in node.arguments:
        if argument.name is None:
            if known or not isinstance(argument.value, nodes.String):
                reporter.report("TS0127", f"`{name}` takes {listed(known) or 'a path'}", argument)
            else:
                path = argument.value.value
        elif argument.name.text not in known:
            near = did_you_mean(argument.name.text, known)
            message = f"`{name}` has no argument `{argument.name.text}:`"
            reporter.report("TS0124", message, argument.name, near)
        elif not isinstance(argument.value, nodes.Integer):
            reporter.report("TS0130", f"`{argument.name.text}:` takes an int", argument.value)
        else:
            numbers[argument.name.text] = argument.value.value
    if name == "recorded":
        return Recorded(path)
    return Generated(numbers.get("seed"), numbers.get("models"))
