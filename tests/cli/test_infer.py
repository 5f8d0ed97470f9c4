"""`tspec infer`: drafts are written, said and never put over what a person reviewed."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.cli.recordings import record_loop
from tspec.cli.app import app
from tspec.cli.infer import module_name


def tspec(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [record_loop(tmp_path / f"run{n}", steps=30 + n) for n in range(2)]


def test_drafts_are_written_the_same_each_time(runs: list[Path], tmp_path: Path) -> None:
    first, second = tmp_path / "first" / "drafts.tspec", tmp_path / "second" / "drafts.tspec"
    result = tspec("infer", *runs, "-o", first)
    assert result.exit_code == 0, result.output
    assert "from 2 runs written to" in result.stdout
    text = first.read_text()
    assert text.startswith("edition 2026\n\nmodule drafts\n\nuse std.torch\n")
    assert "draft invariant" in text
    assert "optimizer.zero_grad" in text
    assert tspec("infer", *runs, "-o", second).exit_code == 0
    assert second.read_text() == text


def test_drafts_are_in_canonical_form_and_hold_on_their_runs(
    runs: list[Path], tmp_path: Path
) -> None:
    drafts = tmp_path / "drafts.tspec"
    tspec("infer", *runs, "-o", drafts)
    assert tspec("fmt", "--check", drafts).exit_code == 0
    assert tspec("check", drafts, "--trace", runs[0]).exit_code == 0


def test_what_was_reviewed_is_never_overwritten(runs: list[Path], tmp_path: Path) -> None:
    drafts = tmp_path / "drafts.tspec"
    tspec("infer", *runs, "-o", drafts)
    accepted = drafts.read_text().replace("draft invariant", "invariant", 1)
    drafts.write_text(accepted)
    result = tspec("infer", *runs, "-o", drafts)
    assert result.exit_code == 2
    assert "holds what was reviewed" in result.stderr
    assert drafts.read_text() == accepted


def test_why_not_says_why(runs: list[Path], tmp_path: Path) -> None:
    result = tspec("infer", *runs, "-o", tmp_path / "d.tspec", "--why-not", "no such words")
    assert "no candidate holds `no such words`" in result.stdout


def test_a_folder_that_is_no_recording_exits_with_two(tmp_path: Path) -> None:
    assert tspec("infer", tmp_path / "nowhere", "-o", tmp_path / "d.tspec").exit_code == 2


@pytest.mark.parametrize(
    ("stem", "name"), [("drafts", "drafts"), ("my-drafts", "my_drafts"), ("2026", "drafts_2026")]
)
def test_the_module_is_named_after_the_file(stem: str, name: str) -> None:
    assert module_name(Path(f"{stem}.tspec")) == name
