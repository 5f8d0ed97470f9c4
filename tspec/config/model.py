"""The values of a configuration after reading, each of its right type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tspec.config.settings import RuleOverride
from tspec.source import Source, Span

FormatName = Literal["text", "json", "sarif", "junit", "github", "html"]
FailOn = Literal["warning", "error", "never"]
"""The least severe findings of a run that make `tspec run` exit with 1; drafts are warnings."""


@dataclass(frozen=True, slots=True)
class LintSection:
    """`[lint]`: the codes that count in each place, and the cost that a rule may have."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    passes: float | None = None
    """The largest number of times that a rule may read all parameters in one step."""
    collectives: float | None = None
    """The largest number of collectives that a rule may need in one step."""


@dataclass(frozen=True, slots=True)
class FmtSection:
    """`[fmt]`."""

    exclude: tuple[str, ...] = ()
    """Patterns of paths, from the folder of the configuration."""


@dataclass(frozen=True, slots=True)
class TestSection:
    """`[test]`."""

    paths: tuple[str, ...] = ()
    fail_under: float | None = None
    """The smallest coverage that passes, in percent."""


@dataclass(frozen=True, slots=True)
class CheckSection:
    """`[check]`."""

    require_complete: bool = False
    """An incomplete recording is an error."""


@dataclass(frozen=True, slots=True)
class RunSection:
    """`[run]`."""

    fail_on: FailOn = "error"
    require_instances: bool = False
    """A run in which no rule had an instance fails."""
    check_steps: str = ""
    """The steps in which rules are checked, such as `25/500`; empty for all."""


@dataclass(frozen=True, slots=True)
class Config:
    """All that a project says. Paths in it are read from `root`, the folder that holds it."""

    file: Path | None = None
    """None where no configuration was found."""
    specs: tuple[str, ...] = ()
    rules: tuple[RuleOverride, ...] = ()
    output_format: FormatName = "text"
    baseline: str | None = None
    check: CheckSection = CheckSection()
    run: RunSection = RunSection()
    lint: LintSection = LintSection()
    fmt: FmtSection = FmtSection()
    test: TestSection = TestSection()
    source: Source | None = None
    places: Mapping[tuple[str | int, ...], Span] = field(default_factory=dict)
    """Path of keys in the configuration's table -> the place of the value in `source`."""

    @property
    def root(self) -> Path:
        """The folder of the configuration; the working folder without one."""
        return self.file.parent if self.file is not None else Path()

    def path(self, said: str) -> Path:
        """A path, or the name of a module or pack, which stays as it is where no such file is."""
        here = self.inside(said)
        return here if here.exists() else Path(said)

    def inside(self, said: str) -> Path:
        """A path of the project as one would type it: below the working folder without that."""
        path, here = self.root / said, Path.cwd()
        return path.relative_to(here) if path.is_relative_to(here) else path
