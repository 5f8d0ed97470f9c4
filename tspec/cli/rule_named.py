"""RULE on a command line: the qualified name of a rule, or its own name if that is unique."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.say import BadParameter

if TYPE_CHECKING:
    from tspec.config.model import Config
    from tspec.resolve.program.rules import Program, Rule

RuleSpecsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--specs",
        metavar="SPECS",
        help="Where the rule is: files, folders, modules or packs; may be given several times. "
        "Without it, the configuration's specs and the shipped ones.",
    ),
]


def rule_named(
    name: str,
    specs: Sequence[Path] | None,
    project: Config,
    param_hint: str = "RULE",
    others: Sequence[str] = (),
) -> tuple[Rule, Program]:
    """The rule and its program. Raises BadParameter where no rule, or more than one, is meant.

    `others` are names that the command would have taken as well.
    """
    from tspec.diagnostics import did_you_mean

    programs = list(_programs(name, specs, project))
    found: dict[str, tuple[Rule, Program]] = {}
    for program in programs:
        for rule in (*program.rules, *program.off, *program.used):
            found.setdefault(rule.qualified, (rule, program))
    if name in found:
        return found[name]
    meant = [full for full, (rule, _) in found.items() if rule.name == name]
    if len(meant) == 1:
        return found[meant[0]]
    if meant:
        raise BadParameter(
            f"`{name}` is {' and '.join(f'`{each}`' for each in meant)}; name the one",
            param_hint=param_hint,
        )
    short = {rule.name for rule, _ in found.values()}
    near = (did_you_mean(name, names) for names in (found, [*short, *others]))
    hint = next(filter(None, near), None)
    where = "" if specs else " in the shipped and configured specs (--specs names others)"
    nothing = (
        f"neither a rule nor a word of rules is called `{name}`"
        if others
        else f"there is no rule `{name}`"
    )
    said = "; ".join(filter(None, (f"{nothing}{where}", hint)))
    raise BadParameter(said, param_hint=param_hint)


def _programs(name: str, specs: Sequence[Path] | None, project: Config) -> Sequence[Program]:
    """The specs to search: those asked for, or else the rule's module, the project's specs, and all
    shipped. No rule reads layouts, so they are not proved.
    """
    from tspec.cli.specs import refuse
    from tspec.resolve import load
    from tspec.resources import shipped

    if specs:
        return [refuse(load(list(specs)), layouts=False)]
    own = [project.path(each) for each in project.specs]
    module = name.rpartition(".")[0]
    if not own and module.startswith("std."):
        loaded = load([Path(module)])
        if loaded.program is not None:
            return [loaded.program]
    found = [refuse(load(own), layouts=False)] if own else []
    return [*found, refuse(load([shipped("stdlib"), shipped("specs")]), layouts=False)]
