"""`tspec lint PATHS…`: likely mistakes in valid specs, and fixes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.options import spread
from tspec.cli.output import (
    FOUND,
    FOUND_NOTHING,
    Format,
    Output,
    accepted,
    write_file,
    write_out,
)
from tspec.cli.say import BadParameter, say
from tspec.cli.specs import refuse, specs_of
from tspec.config.model import LintSection

if TYPE_CHECKING:
    from tspec.lint import FixedFiles, LintFinding, Settings
    from tspec.report.results import Results
    from tspec.resolve import Loaded

PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATHS",
        help="Spec files, folders of them, shipped modules (std.hygiene) or packs (specs/essentials).",
        show_default="`specs` of the configuration",
    ),
]
SelectOption = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="CODES", help="Report these codes only (TS0402,TS044)."),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="CODES", help="Do not report these codes."),
]
FixOption = Annotated[
    bool, typer.Option("--fix", help="Apply the fixes that change no rule's meaning.")
]
UnsafeOption = Annotated[
    bool, typer.Option("--unsafe-fixes", help="Apply also fixes that may change a rule's meaning.")
]
DiffOption = Annotated[
    bool, typer.Option("--diff", help="Write nothing; print what --fix would change.")
]


@dataclass(frozen=True, slots=True)
class FixOptions:
    """Which fixes are applied, and whether files are written."""

    fix: FixOption = False
    unsafe_fixes: UnsafeOption = False
    diff: DiffOption = False

    @property
    def wanted(self) -> bool:
        """True if any of the options was given."""
        return self.fix or self.unsafe_fixes or self.diff


@spread
def lint(
    output: Output,
    options: FixOptions,
    paths: PathsArgument = None,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
) -> None:
    """Find likely mistakes in specs.

    Examples are rules that never fire, always hold or cost much.
    """
    from tspec.cli.fmt import uncollected
    from tspec.lint import lint as look

    settings = _settings(_codes(select), _codes(ignore), output.project.lint)
    wanted = specs_of(paths, output.project)
    with uncollected():
        loaded = _loaded(wanted, output)
        if options.wanted:
            done = _fixed(wanted, settings, options)
            if options.diff:
                raise typer.Exit(FOUND if done.changed else FOUND_NOTHING)
            findings, loaded = done.left, _loaded(wanted, output)
        else:
            findings = look(loaded, settings)
    results = accepted(_results(findings, loaded, settings), output).results
    write_file(results, output)
    write_out(results, output)
    if output.output_format is Format.TEXT:
        kept = [each for each in findings if each.fix is not None]
        safe = sum(each.fix.safe for each in kept if each.fix is not None)
        say(_summary(results, safe, len(kept) - safe, options), err=True)
    raise typer.Exit(FOUND if results.results else FOUND_NOTHING)


def _codes(given: list[str] | None) -> tuple[str, ...]:
    """Codes of a repeated option; each value may hold several, separated by commas."""
    from tspec.lint.registry import known

    found = [code.strip().upper() for each in given or () for code in each.split(",")]
    found = [code for code in found if code]
    for code in found:
        if not any(each.startswith(code) for each in known()):
            raise BadParameter(f"no code of lint begins with `{code}`")
    return tuple(found)


def _settings(select: tuple[str, ...], ignore: tuple[str, ...], project: LintSection) -> Settings:
    """The options of the command line, and the project's where there are none.

    `select` replaces both options of the project, `ignore` adds to them.
    """
    from tspec.lint import Settings

    found = Settings(
        select=select or project.select,
        ignore=(*ignore, *(() if select else project.ignore)),
        ignored_in=project.per_file_ignores,
    )
    if project.passes is not None:
        found = replace(found, passes=project.passes)
    if project.collectives is not None:
        found = replace(found, collectives=project.collectives)
    return found


def _loaded(paths: list[Path], output: Output) -> Loaded:
    """The files without errors; with errors the command ends."""
    from tspec.layout.faults import checked
    from tspec.resolve import load

    loaded = checked(load(paths))
    if loaded.program is None:
        errors = tuple(each for each in loaded.diagnostics if each.severity == "error")
        refuse(replace(loaded, diagnostics=errors), output)
    return loaded


def _results(findings: tuple[LintFinding, ...], loaded: Loaded, settings: Settings) -> Results:
    """The findings, after those warnings of loading that were selected."""
    from tspec.report.results import Results, from_diagnostic

    given = {unit.source.path for unit in loaded.units if unit.given}
    warnings = [
        from_diagnostic(each)
        for each in loaded.diagnostics
        if each.source.path in given and settings.selects(each.code)
    ]
    found = [
        from_diagnostic(
            each.diagnostic,
            {
                "name": each.name,
                "fix": each.fix.what if each.fix else None,
                "fix_is_safe": each.fix.safe if each.fix else None,
            },
        )
        for each in findings
    ]
    return Results((*warnings, *found), command="lint", files=tuple(sorted(given)))


# --- fixes --------------------------------------------------------------------------------------


def _fixed(paths: list[Path], settings: Settings, options: FixOptions) -> FixedFiles:
    """Apply fixes; with `--diff` print the changes, else write the files."""
    shipped = next((path for path in paths if not path.exists()), None)
    if shipped is not None:
        raise BadParameter(f"`{shipped}` ships with tspec: copy it to change it")
    from tspec.cli.fmt import FormattedFile, unified
    from tspec.lint import autofix
    from tspec.resolve import load

    done = autofix(lambda texts: load(paths, texts=texts), settings, options.unsafe_fixes)
    for path, (before, after) in done.changed.items():
        if options.diff:
            say(unified(FormattedFile(path, before, after), "fixed"), nl=False, form="patch")
        else:
            path.write_bytes(after.encode())
    would = "would be " if options.diff else ""
    if done.fixed:
        say(f"{_counted(done.fixed, 'finding')} {would}fixed", err=True)
    return done


def _summary(results: Results, safe: int, unsafe: int, options: FixOptions) -> str:
    number = len(results.results)
    if not number:
        return "no findings"
    files = len({each.file for each in results.results})
    parts = [f"{_counted(number, 'finding')} in {_counted(files, 'file')}"]
    if safe and not options.wanted:
        parts.append(f"{safe} fixable with --fix")
    if unsafe and not options.unsafe_fixes:
        parts.append(f"{unsafe} fixable with --unsafe-fixes")
    first = results.results[0].rule
    return f"\n{', '.join(parts)}; `tspec explain {first}` says more"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
