"""`tspec lint`: what it looks for, what it writes, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tspec.cli.app import app

HEAD = "edition 2026\n\nmodule checks\n\nuse std.torch\n\n"
RULE = "invariant losses_are_small {\n  each step\n  when step > 5 and step > 1\n  expect loss < 10\n}\n"
MENDED = "invariant losses_are_small {\n  each step\n  when step > 5\n  expect loss < 10\n  else warn\n}\n"
IMPLIED = (
    "invariant losses_are_low {\n  each step\n  expect step > 3 implies loss < 9\n  else warn\n}\n"
)


def tspec(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.tspec").write_text(HEAD + RULE)
    return tmp_path


def codes(result: Result) -> list[str]:
    return [each["rule"] for each in json.loads(result.stdout)]


def test_findings_are_shown_and_counted() -> None:
    result = tspec("lint", "rules.tspec")
    assert result.exit_code == 1
    assert "warning[TS0405]: `step > 1` follows from the rest of the rule" in result.stdout
    assert result.stderr == (
        "\n2 findings in 1 file, 2 fixable with --fix; `tspec explain TS0443` says more\n"
    )


def test_nothing_found_is_said() -> None:
    Path("rules.tspec").write_text(HEAD + MENDED)
    result = tspec("lint", ".")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no findings\n")


def test_codes_are_selected_and_ignored() -> None:
    look = ("lint", "rules.tspec", "--output-format", "json")
    assert codes(tspec(*look)) == ["TS0443", "TS0405"]
    assert codes(tspec(*look, "--select", "TS0443")) == ["TS0443"]
    assert codes(tspec(*look, "--select", "ts0443,TS040")) == ["TS0443", "TS0405"]
    assert codes(tspec(*look, "--ignore", "TS0443", "--ignore", "TS0405")) == []
    wrong = tspec(*look, "--select", "TS0112")
    assert wrong.exit_code == 2 and "no code of lint begins with `TS0112`" in wrong.stderr


def test_the_configuration_is_heard() -> None:
    Path("tspec.toml").write_text(
        'specs = ["rules.tspec", "drafts"]\n\n[lint]\nignore = ["TS0405"]\npasses = 0.5\n\n'
        '[lint.per-file-ignores]\n"drafts/*" = ["TS04"]\n'
    )
    Path("drafts").mkdir()
    Path("drafts/some.tspec").write_text(
        HEAD.replace("checks", "drafts") + IMPLIED.replace("<", ">")
    )
    costly = "invariant all_is_small {\n  each step\n  expect norm(parameters.data) < 9\n  else warn\n}\n"
    Path("rules.tspec").write_text(f"{HEAD}{RULE}\n{costly}")
    assert codes(tspec("lint", "--output-format", "json")) == ["TS0443", "TS0445"]
    chosen = tspec("lint", "--output-format", "json", "--select", "TS0405")
    assert codes(chosen) == ["TS0405"]


def test_files_are_fixed_and_in_canonical_form() -> None:
    result = tspec("lint", "rules.tspec", "--fix")
    assert (result.exit_code, result.stderr) == (0, "2 findings fixed\nno findings\n")
    assert Path("rules.tspec").read_text() == HEAD + MENDED
    assert tspec("fmt", "--check", "rules.tspec").exit_code == 0


def test_what_would_be_fixed_is_shown() -> None:
    result = tspec("lint", "rules.tspec", "--fix", "--diff")
    assert result.exit_code == 1
    assert Path("rules.tspec").read_text() == HEAD + RULE
    assert result.stdout.splitlines()[:2] == ["--- rules.tspec", "+++ rules.tspec (fixed)"]
    assert "-  when step > 5 and step > 1\n+  when step > 5\n" in result.stdout
    assert "2 findings would be fixed" in result.stderr
    Path("rules.tspec").write_text(HEAD + MENDED)
    clean = tspec("lint", "rules.tspec", "--fix", "--diff")
    assert (clean.exit_code, clean.stdout) == (0, "")


def test_unsafe_fixes_have_to_be_asked_for() -> None:
    Path("rules.tspec").write_text(HEAD + IMPLIED)
    left = tspec("lint", "rules.tspec", "--fix")
    assert left.exit_code == 1 and "1 fixable with --unsafe-fixes" in left.stderr
    assert Path("rules.tspec").read_text() == HEAD + IMPLIED
    assert tspec("lint", "rules.tspec", "--unsafe-fixes").exit_code == 0
    assert "  when step > 3\n  expect loss < 9\n" in Path("rules.tspec").read_text()


def test_what_is_not_selected_is_not_fixed() -> None:
    tspec("lint", "rules.tspec", "--fix", "--select", "TS0443")
    assert "when step > 5 and step > 1" in Path("rules.tspec").read_text()
    assert "else warn" in Path("rules.tspec").read_text()


def test_a_spec_with_errors_is_not_linted() -> None:
    Path("rules.tspec").write_text(HEAD + RULE.replace("loss <", "los <"))
    for options in ((), ("--fix",)):
        result = tspec("lint", "rules.tspec", *options)
        assert result.exit_code == 2
        assert "error[TS0120]" in result.stderr and "`tspec explain TS0120`" in result.stderr


def test_only_what_was_asked_for_is_linted() -> None:
    Path("more.tspec").write_text("edition 2026\n\nmodule more\n\nuse checks\n")
    assert tspec("lint", "more.tspec").exit_code == 0
    assert tspec("lint", "more.tspec", "rules.tspec").exit_code == 1


def test_findings_can_be_accepted_for_now() -> None:
    update = ("--baseline", "accepted.json", "--update-baseline")
    assert tspec("lint", "rules.tspec", *update).exit_code == 0
    known = tspec("lint", "rules.tspec", "--baseline", "accepted.json")
    assert (known.exit_code, known.stdout) == (0, "")
    assert "2 findings hidden" in known.stderr


@pytest.mark.parametrize("kind", ["sarif", "junit", "github", "text", "json"])
def test_every_format_names_the_code(kind: str) -> None:
    result = tspec("lint", "rules.tspec", "--output-format", kind)
    assert result.exit_code == 1 and "TS0405" in result.stdout


def test_the_shipped_specs_are_clean() -> None:
    root = Path(__file__).resolve().parents[2]
    result = tspec("lint", root / "stdlib", root / "specs", "--no-config")
    assert (result.exit_code, result.stdout) == (0, "")


def test_z3_is_imported_only_where_it_is_asked() -> None:
    Path("rules.tspec").write_text(HEAD + MENDED.replace("  when step > 5\n", ""))
    code = (
        "import sys; sys.argv = ['tspec', 'lint', 'rules.tspec']\n"
        "from tspec.cli.app import app\n"
        "try: app()\n"
        "except SystemExit as end: print(end.code, 'z3' in sys.modules, 'torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.stdout == "0 False False\n", done.stderr


def test_what_ships_is_not_fixed() -> None:
    assert tspec("lint", "std.hygiene").exit_code == 0
    result = tspec("lint", "std.hygiene", "--fix")
    assert result.exit_code == 2 and "`std.hygiene` ships with tspec" in result.stderr


def test_an_allowance_of_what_is_not_looked_for_is_not_unused() -> None:
    allowed = f"// tspec: allow TS0443 because everybody knows\n{MENDED}"
    Path("rules.tspec").write_text(HEAD + allowed)
    look = ("lint", "rules.tspec", "--output-format", "json")
    assert codes(tspec(*look)) == ["TS0490"]
    assert codes(tspec(*look, "--ignore", "TS0443")) == []
    assert codes(tspec(*look, "--select", "TS0490")) == []
    Path("tspec.toml").write_text('[lint.per-file-ignores]\n"rules.tspec" = ["TS0443"]\n')
    assert codes(tspec(*look)) == []


def test_lines_that_end_as_on_windows_are_fixed() -> None:
    Path("rules.tspec").write_bytes((HEAD + RULE).replace("\n", "\r\n").encode())
    assert tspec("lint", "rules.tspec", "--fix").exit_code == 0
    assert Path("rules.tspec").read_bytes() == (HEAD + MENDED).encode()


def test_warnings_of_loading_are_shown_unless_others_are_selected() -> None:
    Path("rules.tspec").write_text(
        HEAD + MENDED.replace("  when", "  /// Nothing to document.\n  when")
    )
    look = ("lint", "rules.tspec", "--output-format", "json")
    assert codes(tspec(*look)) == ["TS0012"]
    assert codes(tspec(*look, "--select", "TS04")) == []


def test_bytes_that_are_no_text_are_said_as_fmt_says_it(folder: Path) -> None:
    (folder / "latin.tspec").write_bytes("// Größe\n".encode("latin-1"))
    result = tspec("lint", "latin.tspec")
    assert result.exit_code == 2
    said = "error[TS0103]: cannot read `latin.tspec`: it is no UTF-8 text (byte 5)\n\n"
    assert result.stderr == f"{said}1 error; `tspec explain TS0103` says more\n"
    assert tspec("fmt", "latin.tspec").stderr.startswith(said)
