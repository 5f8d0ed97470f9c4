"""The installed command: it starts, says its version, and turns down what it does not know."""

import subprocess
import sys

import tspec


def tspec_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tspec", *arguments], capture_output=True, text=True, timeout=300
    )


def test_version_is_printed() -> None:
    assert tspec_command("--version").stdout == f"tspec {tspec.__version__}\n"


def test_an_unknown_command_is_a_wrong_call() -> None:
    result = tspec_command("formt")
    assert result.returncode == 2
    assert "formt" in result.stderr
    assert "Traceback" not in result.stderr
