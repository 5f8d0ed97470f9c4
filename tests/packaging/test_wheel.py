"""The built wheel, installed outside of the checkout, holds all that the commands need."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

FOLDERS = ("grammars", "stdlib", "specs")


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", out]
    built = run(*build, CHECKOUT, cwd=out)
    assert built.returncode == 0, built.stdout + built.stderr
    [path] = out.glob("tspec_lang-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, which borrows the packages (not tspec) that the tests run with."""
    home = tmp_path_factory.mktemp("installed")
    assert run(sys.executable, "-m", "venv", home / "venv", cwd=home).returncode == 0
    python = home / "venv" / "bin" / "python"
    installing = run(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=home)
    assert installing.returncode == 0, installing.stderr
    [site] = (home / "venv" / "lib").glob("python*/site-packages")
    borrowed = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    (site / "borrowed.pth").write_text(f"{borrowed}\n")
    return home


def test_the_wheel_holds_what_lies_at_the_top_of_the_checkout(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        f"tspec/{path.relative_to(CHECKOUT)}"
        for folder in FOLDERS
        for path in (CHECKOUT / folder).rglob("*")
        if path.is_file() and path.suffix in (".lark", ".tspec", ".md")
    }
    expected |= {
        str(path.relative_to(CHECKOUT))
        for path in (CHECKOUT / "tspec").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert expected
    assert expected <= held
    assert not any(name.startswith(FOLDERS) for name in held)


@pytest.mark.slow
def test_it_is_imported_from_the_installation(installed: Path) -> None:
    code = "import tspec; from tspec.resources import shipped; print(tspec.__file__, shipped('stdlib'))"
    result = run(installed / "venv/bin/python", "-c", code, cwd=installed)
    assert result.returncode == 0, result.stderr
    assert all(Path(part).is_relative_to(installed) for part in result.stdout.split())


def test_the_command_starts(installed: Path) -> None:
    result = run(installed / "venv/bin/tspec", "--version", cwd=installed)
    assert result.stdout.startswith("tspec "), result.stderr


def test_pygments_finds_the_lexer(installed: Path) -> None:
    code = "from pygments.lexers import get_lexer_by_name as get; print(get('tspec').__module__)"
    result = run(installed / "venv/bin/python", "-c", code, cwd=installed)
    assert result.stdout == "tspec.syntax.highlight\n", result.stderr


def test_packs_are_listed(installed: Path) -> None:
    result = run(installed / "venv/bin/tspec", "packs", cwd=installed)
    assert "specs.essentials" in result.stdout, result.stderr
