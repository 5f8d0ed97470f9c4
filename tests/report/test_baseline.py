"""What a baseline hides, what it does not, and how it is written."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report import scenes
from tests.report.scenes import decided, program, rule, verdicts
from tspec.report.baseline import apply, updated, without
from tspec.report.baseline_file import BaselineError, read, text
from tspec.report.build import report
from tspec.report.results import Region, Result, Results, from_report

CLEARED = rule("gradients_are_cleared", scenes.contains("optimizer.zero_grad"))
SMALL = rule("gradients_do_not_explode", scenes.below(), over="parameter")
ALL = program(CLEARED, SMALL)


def run(*, cleared: bool = False, subject: str = "fc.weight", step: int = 2):
    return report(
        ALL,
        verdicts(
            decided(CLEARED, [step], verdict="holds" if cleared else "violated"),
            decided(SMALL, [step + 7], subject=subject),
        ),
    )


def spec(*messages: str, files: tuple[str, ...] = ("a.tspec",)) -> Results:
    found = tuple(Result("TS0402", m, Region("a.tspec", 3), fingerprint=m) for m in messages)
    return Results(found, command="lint", files=files)


def test_what_is_in_it_is_hidden_at_another_step() -> None:
    entries = updated((), from_report(run(), ALL))
    assert [entry.subject for entry in entries] == ["", "fc.weight"]
    later = run(step=30)
    applied = apply(from_report(later, ALL), entries)
    assert (applied.results.results, applied.hid, applied.stale) == ((), 2, ())
    assert without(later, applied.hidden).findings == ()


def test_what_is_new_below_a_hidden_cause_is_shown() -> None:
    entries = updated((), from_report(run(), ALL))
    now = run(subject="fc.bias")
    applied = apply(from_report(now, ALL), entries)
    [result] = applied.results.results
    assert (result.rule, result.properties["subject"]) == (SMALL.qualified, "fc.bias")
    assert [f.subject for f in without(now, applied.hidden).findings] == ["fc.bias"]
    assert [entry.subject for entry in applied.stale] == ["fc.weight"]


def test_a_case_that_fails_by_what_is_accepted_alone_is_skipped() -> None:
    entries = [e for e in updated((), from_report(run(), ALL)) if e.rule == CLEARED.qualified]
    before = from_report(run(), ALL)
    assert [case.state for case in before.cases] == ["failed", "failed"]
    cleared, small = apply(before, entries).results.cases
    assert (cleared.state, small.state) == ("skipped", "failed")
    assert cleared.message.startswith("accepted by the baseline: no call of")


def test_what_was_mended_is_stale_until_it_is_updated() -> None:
    entries = updated((), from_report(run(), ALL))
    mended = from_report(run(cleared=True), ALL)
    [stale] = apply(mended, entries).stale
    assert stale.rule == CLEARED.qualified
    assert [entry.rule for entry in updated(entries, mended)] == [SMALL.qualified]


def test_other_commands_and_files_are_let_be(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.tspec").touch()
    entries = updated((), spec("one"))
    of_a_run = from_report(run(), ALL)
    assert apply(of_a_run, entries).stale == ()
    assert set(entries) <= set(updated(entries, of_a_run))
    assert apply(spec(files=("b.tspec",)), entries).stale == ()
    assert len(apply(spec(), entries).stale) == 1


def test_an_entry_whose_file_has_a_name_that_is_too_long_is_stale() -> None:
    entries = [replace(each, file="a" * 5000) for each in updated((), spec("one"))]
    assert list(apply(spec(), entries).stale) == entries


def test_a_second_one_that_is_alike_is_new() -> None:
    entries = updated((), spec("one"))
    applied = apply(spec("one", "one", "two"), entries)
    assert [r.message for r in applied.results.results] == ["one", "two"]
    assert applied.hid == 1


def test_its_text_is_canonical_and_without_places() -> None:
    entries = updated((), from_report(run(), ALL))
    assert text(entries) == text(reversed([*entries, *entries]))
    written = json.loads(text(entries))
    assert written["version"] == 1
    assert all(
        set(e) == {"command", "file", "rule", "subject", "fingerprint"} for e in written["findings"]
    )


def test_it_is_read_again(tmp_path: Path) -> None:
    entries = updated((), from_report(run(), ALL))
    (tmp_path / "baseline.json").write_text(text(entries))
    assert read(tmp_path / "baseline.json") == entries


ENTRY = {"command": "check", "file": "a.tspec", "rule": "a.b", "subject": "", "fingerprint": "0f"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "Expecting value: line 1 column 1 (char 0)"),
        ("[" * 100_000, "maximum recursion depth exceeded"),
        ("{}", "it has no 'version'"),
        ('{"version": "1\\n", "findings": []}', "`version` is no number"),
        ('{"version": 1, "findings": {}}', "`findings` is no list"),
        (
            '{"version": 1, "findings": [{}]}',
            "finding 1 does not have the keys command, file, rule, subject, fingerprint",
        ),
        *(
            (
                json.dumps({"version": 1, "findings": [ENTRY, {**ENTRY, "file": value}]}),
                f"`file` of finding 2 {problem}",
            )
            for value, problem in (
                (None, "is no text"),
                ([], "is no text"),
                (7, "is no text"),
                ("\ud800", "holds what is no character"),
                ("a\0", "holds what is no character"),
            )
        ),
    ],
)
def test_what_is_no_baseline_is_refused(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "b.json"
    file.write_text(content)
    with pytest.raises(BaselineError) as refused:
        read(file)
    message = str(refused.value)
    assert message.startswith(f"{file} is no baseline ({said}")
    assert message.endswith("); fix it, or remove it and write one with --update-baseline")


def test_a_baseline_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('{"version": 2, "findings": []}')
    with pytest.raises(BaselineError, match=r"version 2, and this tspec knows 1$"):
        read(tmp_path / "b.json")
