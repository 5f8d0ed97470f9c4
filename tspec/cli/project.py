"""The project's configuration, and the options that override it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Self

import typer

from tspec.cli.say import BadParameter, say
from tspec.config.model import Config
from tspec.config.settings import RULE_ACTIONS, RuleOverride

FAULT = 2

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="The configuration, instead of the nearest tspec.toml or pyproject.toml.",
    ),
]
NoConfigOption = Annotated[bool, typer.Option("--no-config", help="Read no configuration.")]
RuleOption = Annotated[
    list[str] | None,
    typer.Option("--rule", metavar="NAME=ACTION", help=f"Set a rule: {', '.join(RULE_ACTIONS)}."),
]

NO_CONFIG = Config()


@dataclass(frozen=True, slots=True)
class Project:
    """Where the configuration is; with `@spread` its fields are options, and `project` is read."""

    config: ConfigOption = None
    no_config: NoConfigOption = False
    project: Config = field(default=NO_CONFIG, metadata={"option": False})

    def settled(self) -> Self:
        """Apply the configuration. A fault in it ends the command."""
        if self.no_config:
            if self.config is not None:
                raise BadParameter("--config and --no-config contradict each other")
            return self
        return replace(self, project=_read(self.config))


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """Settings of single rules on the command line."""

    rule: RuleOption = None

    def settings(self, project: Config) -> tuple[RuleOverride, ...]:
        """The settings of the project and of the command line. Raises BadParameter."""
        return (*project.rules, *map(_setting, _each_once(self.rule or ())))


def _read(file: Path | None) -> Config:
    from tspec.config.read import NAMES, find, has_table, read

    if file is not None and file.name == NAMES[1] and not has_table(file):
        raise BadParameter(f"{file} has no table [tool.tspec]", param_hint="--config")
    found = read((file,) if file is not None else find(Path.cwd()))
    if found.diagnostics:
        from tspec.diagnostics import render

        for diagnostic in found.diagnostics:
            say(f"{render(diagnostic)}\n", err=True)
        count = len(found.diagnostics)
        say(
            f"{count} error{'' if count == 1 else 's'} in the configuration; "
            f"`tspec explain {found.diagnostics[0].code}` says more",
            err=True,
        )
        raise typer.Exit(FAULT)
    return found.config


def _each_once(said: list[str] | tuple[()]) -> list[str]:
    names = [each.partition("=")[0] for each in said]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadParameter(f"`{twice}` is set twice", param_hint="--rule")
    return list(said)


def _setting(said: str) -> RuleOverride:
    from tspec.diagnostics import did_you_mean
    from tspec.source import Source, Span

    name, _, action = said.partition("=")
    for known in RULE_ACTIONS:
        if name and action == known:
            source = Source("--rule", said)
            return RuleOverride(name, known, source, Span(0, len(name)), "the command line")
    hint = (
        did_you_mean(action, RULE_ACTIONS) or f"such as `{name or 'std.health.loss_is_finite'}=off`"
    )
    raise BadParameter(f"`{said}` is no NAME=ACTION; {hint}", param_hint="--rule")
