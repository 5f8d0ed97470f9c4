"""Settings of rules: which are off, and which take another action than their `else`.

Specs (`use a.b with rule: off`), the project's configuration and the command line have settings. The
command line overrides the configuration, which overrides specs. Of two specs, the one that uses the
other counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tspec.builtin.actions import DEFAULT
from tspec.config.settings import RuleAction, RuleOverride
from tspec.diagnostics import Related, did_you_mean
from tspec.resolve.findings import Findings
from tspec.resolve.invariants.actions import impossible
from tspec.resolve.modules.files import Unit, is_pack
from tspec.resolve.program import rules
from tspec.source import Source, Span
from tspec.syntax import nodes


class ModuleFinder(Protocol):
    """Finds the rules of modules that are not loaded."""

    def rules_of(self, module: str) -> tuple[str, ...] | None:
        """The names of a module's rules, or None if there is no such module."""
        ...

    def names(self) -> list[str]:
        """All modules that can be used."""
        ...


@dataclass(frozen=True, slots=True)
class AppliedSetting:
    """A setting that applies to one rule. `unit` is its file; None if it is not in a spec."""

    rule: str
    action: RuleAction
    source: Source
    span: Span
    where: str
    unit: Unit | None = None
    alone: bool = True
    """True if the setting is about this rule and no other."""


@dataclass(frozen=True, slots=True)
class RulesInEffect:
    """Rules as they are executed, and rules that are off."""

    kept: tuple[rules.Rule, ...]
    off: tuple[rules.Rule, ...] = ()


def settle(
    units: Sequence[Unit],
    found: Sequence[rules.Rule],
    settings: Sequence[RuleOverride],
    modules: ModuleFinder,
    findings: Findings,
) -> RulesInEffect:
    """Apply all settings. Errors in settings are reported."""
    by_spec: dict[str, list[AppliedSetting]] = {}
    for applied in _in_specs(units, findings):
        by_spec.setdefault(applied.rule, []).append(applied)
    known = {_qualified(unit, node) for unit in units for node in _invariants(unit)}
    known |= {f"{unit.name}.{name}" for unit in units for name in unit.broken}
    for setting in settings:
        _check_name(setting, known, modules, findings)
    uses = _reach(units)
    kept: list[rules.Rule] = []
    off: list[rules.Rule] = []
    for rule in found:
        chain = _winner(by_spec.get(rule.qualified, []), uses, findings)
        chain += _of_project(rule.qualified, settings, said_of_it=bool(chain))
        rule, last = _decided(rule, chain, findings)
        if last is not None and last.action == "off":
            off.append(replace(rule, set_by=last.where))
        else:
            kept.append(rule)
    return RulesInEffect(tuple(kept), tuple(off))


# --- settings in specs ---------------------------------------------------------------------------


def _in_specs(units: Sequence[Unit], findings: Findings) -> Iterator[AppliedSetting]:
    by_name = {unit.name: unit for unit in units if unit.name}
    for unit in units:
        for use in unit.file.uses:
            brought = offered(by_name.get(use.module.text), by_name)
            if brought is None or not unit.asked:
                continue
            for setting in use.settings:
                yield from _one(unit, use, setting, brought, findings)


def _one(
    unit: Unit,
    use: nodes.Use,
    setting: nodes.RuleSetting,
    brought: Mapping[str, bool],
    findings: Findings,
) -> Iterator[AppliedSetting]:
    text = setting.rule.text
    matches = sorted(name for name in brought if name == text or name.endswith(f".{text}"))
    place = (unit.source, setting.rule.span)
    if len(matches) > 1:
        message = f"two rules of `{use.module.text}` are called `{text}`"
        findings.add(
            "TS0195", message, place, hint=f"write {' or '.join(f'`{m}`' for m in matches)}"
        )
    elif matches:
        action: RuleAction = setting.action.text  # type: ignore[assignment]  # the grammar's words
        line = unit.source.position(setting.span.start).line
        where = f"{unit.source.path}:{line}"
        yield AppliedSetting(matches[0], action, unit.source, setting.rule.span, where, unit)
    elif not any(name.rpartition(".")[2] == text.rpartition(".")[2] for name in unit.broken):
        short = {name.rpartition(".")[2]: name for name in brought}
        hint = did_you_mean(text, [*short, *brought])
        if not brought:
            hint = "it has names for rules, and no rules"
        findings.add("TS0194", f"`{use.module.text}` has no rule `{text}`", place, hint=hint)


def offered(unit: Unit | None, by_name: Mapping[str, Unit]) -> dict[str, bool] | None:
    """The rules that come with a module, including those of modules that it brings; None without a
    module.
    """
    if unit is None:
        return None
    found: dict[str, bool] = {}
    pending, seen = [unit], {unit.key}
    while pending:
        each = pending.pop()
        found.update({_qualified(each, node): True for node in _invariants(each)})
        for use in each.file.uses:
            brings = is_pack(each.file) or use.settings
            below = by_name.get(use.module.text) if brings else None
            if below is not None and below.key not in seen:
                seen.add(below.key)
                pending.append(below)
    return found


def _invariants(unit: Unit) -> Iterator[nodes.Invariant]:
    return (node for node in unit.file.declarations if isinstance(node, nodes.Invariant))


def _qualified(unit: Unit, node: nodes.Invariant) -> str:
    return f"{unit.name}.{node.name.text}" if unit.name else node.name.text


def _of_project(
    rule: str, settings: Sequence[RuleOverride], *, said_of_it: bool
) -> list[AppliedSetting]:
    """The most specific setting of the configuration, then that of the command line.

    `said_of_it`: a spec sets this very rule. Then a star of the configuration does not apply to it;
    a star on the command line applies to all that it covers.
    """
    chain = []
    for of_command_line in (False, True):
        mine = [s for s in settings if bool(s.by) == of_command_line and s.covers(rule)]
        if said_of_it and not of_command_line:
            mine = [s for s in mine if not s.rule.endswith("*")]
        if mine:
            # A name is more exact than `a.b.*`, and that than `a.*`.
            best = max(mine, key=lambda s: (not s.rule.endswith("*"), len(s.rule)))
            alone = not (of_command_line or best.rule.endswith("*"))
            place = best.source, best.span
            chain.append(AppliedSetting(rule, best.action, *place, best.where, alone=alone))
    return chain


def _check_name(
    setting: RuleOverride, known: Iterable[str], modules: ModuleFinder, findings: Findings
) -> None:
    """A setting of a rule that this command does not load is let be, one of a rule that is nowhere not."""
    if any(setting.covers(name) for name in known):
        return
    module, _, name = setting.rule.rpartition(".")
    names = modules.rules_of(module) if module else None
    place = (setting.source, setting.span)
    if names is None:
        if name == "*" and any(each.startswith(f"{module}.") for each in modules.names()):
            return
        hint = did_you_mean(setting.rule, known) or did_you_mean(module, modules.names())
        what = f"module `{module}`" if module else f"rule `{name}`"
        findings.add("TS0194", f"there is no {what}", place, hint=hint)
    elif name != "*" and name not in names:
        near = did_you_mean(name, names)
        findings.add("TS0194", f"`{module}` has no rule `{name}`", place, hint=near)


# --- which counts --------------------------------------------------------------------------------


def _reach(units: Sequence[Unit]) -> dict[str, set[str]]:
    """For each file the files that it uses, over as many others as there are in between, by key."""
    by_name = {unit.name: unit for unit in units if unit.name}
    reach: dict[str, set[str]] = {}
    for unit in units:
        seen: set[str] = set()
        pending = [unit]
        while pending:
            for use in pending.pop().file.uses:
                below = by_name.get(use.module.text)
                if below is not None and below.key not in seen:
                    seen.add(below.key)
                    pending.append(below)
        reach[unit.key] = seen
    return reach


def _winner(
    applied: list[AppliedSetting], uses: Mapping[str, set[str]], findings: Findings
) -> list[AppliedSetting]:
    """The setting in specs that takes effect, as a list; empty if there is none."""

    def above(one: AppliedSetting, other: AppliedSetting) -> bool:
        assert one.unit is not None and other.unit is not None
        return other.unit.key in uses[one.unit.key]

    top = [one for one in applied if not any(above(other, one) for other in applied)]
    for one in top[1:]:
        first = (Related(top[0].span, "the other one", top[0].source),)
        place = (one.source, one.span)
        name = one.rule.rpartition(".")[2]
        if one.action != top[0].action:
            message = f"`{name}` is set to `{one.action}` here and to `{top[0].action}` elsewhere"
            hint = "leave one out; a file that uses both may decide between them"
            findings.add("TS0196", message, place, related=first, hint=hint)
        elif one.unit is top[0].unit:
            message = f"`{name}` is set twice"
            findings.add("TS0197", message, place, related=first, severity="warning")
    return top[:1]


def _decided(
    rule: rules.Rule, chain: list[AppliedSetting], findings: Findings
) -> tuple[rules.Rule, AppliedSetting | None]:
    """The rule after one setting after the other, and the last of them."""
    last: AppliedSetting | None = None
    for applied in chain:
        if applied.action == "off":
            last = applied
            continue
        _check_change(rule, applied, last, findings)
        if not rule.draft:
            wrong = impossible(applied.action, rule.window)
            if wrong is not None:
                findings.add("TS0155", wrong[0], (applied.source, applied.span), hint=wrong[1])
                continue
            responses = (rules.Response(applied.action),)
            if responses != rule.responses:
                rule = replace(rule, responses=responses, set_by=applied.where)
        last = applied
    return rule, last


def _check_change(
    rule: rules.Rule, applied: AppliedSetting, last: AppliedSetting | None, findings: Findings
) -> None:
    """Report a setting without effect, unless it is one of the command line or of many rules."""
    if not applied.alone:
        return
    place = (applied.source, applied.span)
    if rule.draft and applied.action != DEFAULT:
        message = f"`{rule.name}` is a draft, which only warns"
        hint = "accept it first: delete the word `draft`"
        findings.add("TS0197", message, place, hint=hint, severity="warning")
    elif (last is None or last.action != "off") and rule.responses == (
        rules.Response(applied.action),  # type: ignore[arg-type]  # `off` was handled before
    ):
        message = f"this changes nothing: `{rule.name}` does `{applied.action}` anyway"
        findings.add("TS0197", message, place, severity="warning")
