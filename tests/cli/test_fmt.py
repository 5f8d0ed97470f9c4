"""`tspec fmt`: what it writes, what it says, and its exit codes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tspec.cli.app import app

UGLY = "edition 2026\nmodule   a\n\n\n\nlet x=1\n"
NICE = "edition 2026\n\nmodule a\n\nlet x = 1\n"
BROKEN = "edition 2026\n\nmodule a\n\nlet x = \n"


def tspec(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def ugly(tmp_path: Path) -> Path:
    path = tmp_path / "ugly.tspec"
    path.write_text(UGLY)
    return path


def test_a_file_is_rewritten(ugly: Path) -> None:
    result = tspec("fmt", ugly)
    assert result.exit_code == 0
    assert ugly.read_text() == NICE
    assert "1 file reformatted" in result.stderr
    assert tspec("fmt", ugly).stderr == "1 file left unchanged\n"


def test_check_writes_nothing_and_fails(ugly: Path) -> None:
    result = tspec("fmt", "--check", ugly)
    assert result.exit_code == 1
    assert f"would reformat {ugly}" in result.stdout
    assert ugly.read_text() == UGLY


def test_diff_is_a_patch(ugly: Path) -> None:
    result = tspec("fmt", "--diff", ugly)
    assert result.exit_code == 1
    assert "-let x=1\n+let x = 1\n" in result.stdout
    assert ugly.read_text() == UGLY


def test_a_folder_is_searched(ugly: Path) -> None:
    (ugly.parent / "deep").mkdir()
    (ugly.parent / "deep" / "nice.tspec").write_text(NICE)
    result = tspec("fmt", "--check", ugly.parent)
    assert "1 file would be reformatted, 1 file already formatted" in result.stderr


def test_a_file_with_errors_is_left_and_the_others_are_formatted(ugly: Path) -> None:
    broken = ugly.parent / "broken.tspec"
    broken.write_text(BROKEN)
    result = tspec("fmt", ugly, broken)
    assert result.exit_code == 2
    assert "error[TS" in result.stderr
    assert f"{broken}:5" in result.stderr
    assert broken.read_text() == BROKEN
    assert ugly.read_text() == NICE


def test_bytes_that_are_no_text_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "latin.tspec"
    path.write_bytes("// Größe\n".encode("latin-1"))
    result = tspec("fmt", path)
    assert result.exit_code == 2
    assert "no UTF-8" in result.stderr
    assert path.read_bytes() == "// Größe\n".encode("latin-1")


@pytest.mark.parametrize("arguments", [["nowhere.tspec"], ["--chekc", "."], []])
def test_a_wrong_call_is_refused(arguments: list[str]) -> None:
    assert tspec("fmt", *arguments).exit_code == 2


def test_a_folder_without_specs_is_refused(tmp_path: Path) -> None:
    result = tspec("fmt", tmp_path)
    assert result.exit_code == 2
    assert "no .tspec file in" in result.stderr


OLD = "module a\n\nlet   x = 1\n"


def test_upgrading_writes_the_newest_edition(tmp_path: Path) -> None:
    path = tmp_path / "old.tspec"
    path.write_text(OLD)
    assert tspec("fmt", path).exit_code == 2
    result = tspec("fmt", "--upgrade", "--check", path)
    assert result.exit_code == 1
    assert result.stdout == (f"would upgrade {path}: edition not named -> 2026\n")
    result = tspec("fmt", "--upgrade", "--diff", path)
    assert "+edition 2026" in result.stdout
    assert "+++ " in result.stdout and "(upgraded)" in result.stdout
    assert path.read_text() == OLD
    result = tspec("fmt", "--upgrade", path)
    assert result.exit_code == 0
    assert path.read_text() == "edition 2026\n\nmodule a\n\nlet x = 1\n"
    assert tspec("fmt", "--upgrade", "--check", path).exit_code == 0


def test_the_configuration_names_files_and_excludes_some(
    ugly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ugly.parent)
    (ugly.parent / "tspec.toml").write_text('[fmt]\nexclude = ["drafts/", "old*.tspec"]\n')
    (ugly.parent / "drafts").mkdir()
    for name in ("drafts/a.tspec", "old1.tspec"):
        (ugly.parent / name).write_text(UGLY)
    result = tspec("fmt", "--check", ".", "drafts/a.tspec")
    assert result.stdout == "would reformat ugly.tspec\n"
    assert "1 file would be reformatted, 2 files excluded" in result.stderr
    assert "3 files would be reformatted" in tspec("fmt", "--check", "--no-config", ".").stderr
    assert "name files or folders" in tspec("fmt", "--check").stderr
    (ugly.parent / "tspec.toml").write_text('specs = ["old1.tspec", "std.hygiene"]\n')
    assert tspec("fmt", "--check").stdout == "would reformat old1.tspec\n"


def test_an_error_in_the_configuration_ends_the_command(
    ugly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ugly.parent)
    (ugly.parent / "tspec.toml").write_text("[fmt]\nexcludes = []\n")
    result = tspec("fmt", "--check", ".")
    assert result.exit_code == 2
    assert "error[TS0501]: there is no key `excludes` in `[fmt]`" in result.stderr
    assert " --> tspec.toml:2:1" in result.stderr
    assert tspec("fmt", "--check", "--no-config", ".").exit_code == 1
