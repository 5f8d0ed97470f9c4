"""TS0432: an axis that none of the project's meshes has, and that no function returns."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.diagnostics import did_you_mean
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Axis

ALWAYS = frozenset({"world"})


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    axes = _axes(checked)
    if not axes:
        return
    found = {each.name for each in checked.program.vocabulary.groups if each.callables}
    for rule in checked.rules:
        for group, span in zip(rule.across, rule.spans.groups, strict=True):
            if not isinstance(group, Axis) or group.name in axes | found | ALWAYS:
                continue
            meshes = ", ".join(f"`{mesh.name}`" for mesh in checked.program.meshes)
            message = f"`{group.name}` is an axis of no mesh here ({meshes}), so the rule is idle"
            listed = ", ".join(f"`{axis}`" for axis in sorted(axes))
            hint = did_you_mean(group.name, axes) or f"there are {listed}"
            yield about(rule, message, span, hint)


def _axes(checked: CheckedProgram) -> frozenset[str]:
    """The axes of all meshes, regroupings included."""
    found: set[str] = set()
    for mesh in checked.program.meshes:
        found.update(axis for axis, _ in mesh.axes)
        found.update(axis for _, regrouped in mesh.regroups for axis, _ in regrouped)
    return frozenset(found)


RULE = LintRule("TS0432", "axis-not-in-mesh", check)
