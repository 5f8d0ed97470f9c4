"""`compare`: all changes between two sides."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.diff.changes import ChangeKind, Changes, DeclarationChange, in_order
from tspec.diff.declarations.others import other_changes
from tspec.diff.declarations.pairing import paired, same_body
from tspec.diff.declarations.parts import changed_parts
from tspec.diff.declarations.vocabulary import ChangedNames, changed_names
from tspec.diff.sides.side import Side
from tspec.diff.witness.relation import RuleRelation, relate
from tspec.resolve.program.rules import Rule


def compare(old: Side, new: Side) -> Changes:
    """The changes from one side to the other, worst first; unchanged declarations are counted."""
    found: list[DeclarationChange] = []
    hidden = 0
    before, after = _once(old.program.rules), _once(new.program.rules)
    matched = paired(before, after)
    changed = changed_names(old.program.vocabulary, new.program.vocabulary)
    for first, second in matched.pairs:
        change = _of_pair(first, second, (old, new), changed)
        if change is None:
            hidden += 1
        else:
            found.append(change)
    off = {rule.qualified for rule in new.program.off}
    for rule in matched.removed:
        written = old.written(rule.source, rule.span)
        notes = ("it is switched off",) if rule.qualified in off else ()
        found.append(
            DeclarationChange("rule", rule.qualified, "removed", written, None, notes=notes)
        )
    for rule in matched.added:
        written = new.written(rule.source, rule.span)
        found.append(DeclarationChange("rule", rule.qualified, "added", None, written))
    others, same = other_changes(old, new)
    return Changes(in_order([*found, *others]), hidden + same)


def _once(rules: Sequence[Rule]) -> list[Rule]:
    """Each rule once, also where two packs name it."""
    return list({(rule.qualified, rule.source.path, rule.span): rule for rule in rules}.values())


def _of_pair(
    old: Rule, new: Rule, sides: tuple[Side, Side], changed: ChangedNames
) -> DeclarationChange | None:
    """The change of a rule; None if it means the same, wherever it stands now."""
    renamed = old.name != new.name
    declared = changed.used_by(new)
    same = same_body(old, new)
    alike = same and old.responses == new.responses and old.draft == new.draft
    if alike and not renamed and not declared:
        return None
    related = RuleRelation("equivalent")
    if declared:
        names = ", ".join(f"`{name}`" for name in declared)
        related = RuleRelation("unknown", bound=f"declared differently: {names}")
    elif not same:
        related = relate(old, new, sides[1].program.vocabulary)
    parts = tuple(changed_parts(old, new, sides[1].program.vocabulary, related.relation))
    return DeclarationChange(
        "rule",
        new.qualified,
        _kind(old, new, related, renamed and same),
        sides[0].written(old.source, old.span),
        sides[1].written(new.source, new.span),
        old.qualified if old.qualified != new.qualified else "",
        parts,
        related.witnesses,
        (related.bound,) if related.bound else (),
    )


def _kind(old: Rule, new: Rule, related: RuleRelation, renamed: bool) -> ChangeKind:
    if related.relation != "equivalent":
        return related.relation
    if old.draft and not new.draft:
        return "draft accepted"
    return "renamed" if renamed else "equivalent"
