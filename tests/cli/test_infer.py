"""`tspec infer`: drafts are written, said and never put over what a person reviewed."""

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.cli.recordings import record_loop
from tspec.cli.app import app
from tspec.cli.infer import module_name
from tspec.infer import heads, relations
from tspec.infer.heads import Claim, RuleHead
from tspec.syntax.editions import NEWEST
from tspec.trace.meta import write_meta


def tspec(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [record_loop(tmp_path / f"run{n}", steps=30 + n) for n in range(2)]


def test_drafts_are_written_the_same_each_time(runs: list[Path], tmp_path: Path) -> None:
    first, second = tmp_path / "first" / "drafts.tspec", tmp_path / "second" / "drafts.tspec"
    for file in (first, second):
        file.parent.mkdir()
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


def test_drafts_are_not_replaced_by_none(runs: list[Path], tmp_path: Path) -> None:
    """A recording of nothing, such as one of a script that failed at once, has no drafts."""
    file = tmp_path / "drafts.tspec"
    tspec("infer", *runs, "-o", file)
    drafts = file.read_text()
    result = tspec("infer", record_loop(tmp_path / "idle", steps=0), "-o", file)
    assert result.exit_code == 0
    assert "0 drafts from 1 run;" in result.stdout
    assert "is left as it was" in " ".join(result.stdout.split())
    assert file.read_text() == drafts


def test_why_not_says_why(runs: list[Path], tmp_path: Path) -> None:
    result = tspec("infer", *runs, "-o", tmp_path / "d.tspec", "--why-not", "no such words")
    assert "no candidate holds `no such words`" in result.stdout


def test_a_folder_that_is_missing_is_said_before_the_work(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    no_recording = tmp_path / "empty"
    no_recording.mkdir()
    result = tspec("infer", *runs, no_recording, "-o", "nowhere/drafts.tspec")
    assert result.exit_code == 2
    assert "there is no folder nowhere to write drafts.tspec into" in _unwrapped(result.stderr)
    assert not (tmp_path / "nowhere").exists()


def _unwrapped(text: str) -> str:
    """Words of a message that may stand in a box."""
    return " ".join(text.replace("│", " ").split())


def test_a_recording_that_is_given_twice_counts_once(runs: list[Path], tmp_path: Path) -> None:
    once, twice = tmp_path / "once.tspec", tmp_path / "twice.tspec"
    tspec("infer", *runs, "-o", once)
    result = tspec("infer", *runs, runs[0].parent / "." / runs[0].name, "-o", twice)
    assert result.exit_code == 0, result.output
    assert f"note: {runs[0]} is given twice; it counts once" in result.stderr
    assert "from 2 runs written to" in result.stdout
    assert twice.read_text() == once.read_text().replace("module once", "module twice")


def test_a_copy_of_a_recording_is_no_further_run(runs: list[Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(runs[0], copy)
    result = tspec("infer", *runs, copy, "-o", tmp_path / "d.tspec")
    assert f"note: {copy} holds the same recording as {runs[0]}; it counts once" in result.stderr
    assert "from 2 runs written to" in result.stdout
    assert str(copy) not in (tmp_path / "d.tspec").read_text()


def test_recordings_that_are_incomplete_are_named(tmp_path: Path) -> None:
    whole = record_loop(tmp_path / "whole", steps=30)
    torn = record_loop(tmp_path / "torn", steps=31)
    write_meta(torn, 3)
    stream = torn / "rank-0.arrow"
    stream.write_bytes(stream.read_bytes()[:-20])
    result = tspec("infer", whole, torn, "-o", tmp_path / "d.tspec")
    lines = [line for line in result.stderr.splitlines() if line.startswith("note: ")]
    [cut, missing] = lines
    assert re.fullmatch(
        f"note: {torn}: the recording of rank 0 does not reach the end of the run "
        r"\(cut off, [\d,]+ bytes torn\); drafts come from what it holds",
        cut,
    )
    assert missing == f"note: {torn}: nothing was recorded on ranks 1-2 of 3"


def test_good_recordings_need_no_note(runs: list[Path], tmp_path: Path) -> None:
    assert tspec("infer", *runs, "-o", tmp_path / "d.tspec").stderr == ""


def test_a_module_that_is_not_there_is_said(runs: list[Path], tmp_path: Path) -> None:
    result = tspec("infer", *runs, "--use", "nowhere", "-o", tmp_path / "d.tspec")
    assert result.exit_code == 2
    assert "tspec: cannot use std.torch, nowhere: " in result.stderr
    assert not (tmp_path / "d.tspec").exists()


def test_a_draft_that_does_not_type_is_left_out_and_said(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One relation more, which proposes what has no type."""

    def propose(_: object) -> tuple[Claim, ...]:
        return (Claim("broken", RuleHead((), None, "each step", ()), "no_such_name == 1", "All."),)

    monkeypatch.setattr(relations, "RELATIONS", (*relations.RELATIONS, propose))
    result = tspec("infer", *runs, "-o", tmp_path / "d.tspec", "--why-not", "no_such_name")
    assert result.exit_code == 0, result.output
    assert "draft invariant" in (tmp_path / "d.tspec").read_text()
    assert (
        "note: 1 candidate left out, for a fault of tspec's own (please report it): "
        "`no_such_name == 1` does not type: " in result.stderr
    )
    assert re.search(r"does not type: .*each step expect no_such_name == 1", result.stdout)


def test_drafts_are_of_the_newest_edition(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tspec("infer", *runs, "-o", tmp_path / "d.tspec")
    assert (tmp_path / "d.tspec").read_text().startswith(f"edition {NEWEST}\n")
    monkeypatch.setattr(heads, "NEWEST", 2025)
    assert heads.header("m", ()) == ["edition 2025", "module m"]


def test_a_folder_that_is_no_recording_exits_with_two(tmp_path: Path) -> None:
    assert tspec("infer", tmp_path / "nowhere", "-o", tmp_path / "d.tspec").exit_code == 2


@pytest.mark.parametrize(
    ("stem", "name"), [("drafts", "drafts"), ("my-drafts", "my_drafts"), ("2026", "drafts_2026")]
)
def test_the_module_is_named_after_the_file(stem: str, name: str) -> None:
    assert module_name(Path(f"{stem}.tspec")) == name
