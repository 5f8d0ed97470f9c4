"""A fault of tspec's own is one clear message and exit code 2; the user's faults say what is wrong."""

from pathlib import Path

import pytest

import tspec.cli
from tests.cli.recordings import record_loop
from tspec.cli import app as command_line
from tspec.cli.say import progress
from tspec.trace.meta import write_meta


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["tspec", *arguments])
    with pytest.raises(SystemExit) as leaving:
        command_line.main()
    assert isinstance(leaving.value.code, int)
    return leaving.value.code


def fail(*_: object) -> None:
    raise LookupError("no such thing")


def test_an_internal_fault_is_told_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("TSPEC_DEBUG", raising=False)
    monkeypatch.setattr("tspec.trace.show.summary", fail)
    assert run_main(monkeypatch, "trace", "show", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert said.startswith("tspec: internal error: LookupError: no such thing\n")
    assert "TSPEC_DEBUG=1" in said
    assert "Traceback" not in said


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TSPEC_DEBUG", "1")
    monkeypatch.setattr("tspec.trace.show.summary", fail)
    monkeypatch.setattr("sys.argv", ["tspec", "trace", "show", str(tmp_path)])
    with pytest.raises(LookupError):
        command_line.main()


def test_a_folder_that_is_no_recording_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run_main(monkeypatch, "trace", "show", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert said.startswith("tspec: no recording in")
    assert "internal" not in said


def test_a_file_that_cannot_be_written_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "checks.tspec").write_text("edition 2026\n\nmodule checks\n\nuse std.hygiene\n")
    output = str(tmp_path / "a" / "hooks.py")
    assert run_main(monkeypatch, "compile", str(tmp_path / "checks.tspec"), "-o", output) == 2
    said = capsys.readouterr().err
    assert "internal" not in said
    assert str(tmp_path / "a") in said


def test_commands_print_in_one_place():
    room = Path(tspec.cli.__file__).parent
    printing = [
        path.name
        for path in sorted(room.glob("*.py"))
        if "typer.echo(" in path.read_text(encoding="utf-8")
    ]
    assert printing == ["say.py"]


HOSTILE = "x\x1b[31m\n::error::y"


@pytest.mark.parametrize(
    "call",
    [
        ("explain", HOSTILE),
        ("run", "specs", "--", HOSTILE),
        ("record", "-o", "run", "--", HOSTILE),
        ("record", "-o", "run", "--", "-m", HOSTILE),
        ("record", "-o", "run", "--max-trace-size", HOSTILE, "--", __file__),
        ("compile", "specs/replicas", "-o", "hooks.py", "--given", f"{HOSTILE}=1"),
        ("fmt", HOSTILE),
        ("check", "--output-format", HOSTILE, "specs"),
        ("lint", f"--{HOSTILE}"),
        (HOSTILE,),
    ],
    ids=lambda call: " ".join(call[:1]).partition("\x1b")[0],
)
def test_a_wrong_call_commands_no_terminal_and_no_ci(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: tuple[str, ...]
) -> None:
    assert run_main(monkeypatch, *call) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "::error::y" in said.err
    assert "\x1b" not in said.err
    assert not any(line.lstrip().startswith("::") for line in said.err.splitlines())


def test_what_meta_says_commands_no_terminal_and_no_ci(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = record_loop(tmp_path / "run")
    write_meta(folder, 1, {f"key {HOSTILE}": f"value {HOSTILE}"})
    with pytest.raises(SystemExit) as leaving:
        monkeypatch.setattr("sys.argv", ["tspec", "trace", "show", str(folder)])
        command_line.main()
    assert leaving.value.code == 0
    said = capsys.readouterr()
    assert "value x\\x1b[31m\\n::error::y" in said.out
    assert "\x1b" not in said.out
    assert not any(line.lstrip().startswith("::") for line in said.out.splitlines())


def test_the_purpose_of_each_command_fits_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run_main(monkeypatch, "--help") == 0
    _, _, commands = capsys.readouterr().out.partition("Commands:\n")
    assert "run  " in commands
    assert "..." not in commands


@pytest.mark.parametrize(
    "arguments",
    [
        ("lint", "checks.tspec", "--report", "report.unknown"),
        ("trace", "show", "a_folder_with_a_long_name/that_holds_no_recording_at_all"),
    ],
)
def test_on_a_terminal_errors_are_broken_between_words(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "a_folder_with_a_long_name" / "that_holds_no_recording_at_all").mkdir(parents=True)
    in_a_log = (run_main(monkeypatch, *arguments), capsys.readouterr().err)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    on_a_terminal = (run_main(monkeypatch, *arguments), capsys.readouterr().err)
    assert (
        max(map(len, in_a_log[1].splitlines())) > 80 >= max(map(len, on_a_terminal[1].splitlines()))
    )
    assert in_a_log[0] == on_a_terminal[0] == 2
    assert in_a_log[1].split() == on_a_terminal[1].split()


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_for_a_terminal_alone(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    progress("running the first step of each of 4 ranks")
    printed = capsys.readouterr()
    assert ("running the first step" in printed.err, printed.out) == (terminal, "")
