"""What lies in a job's folder, also of processes that were killed, does not contradict itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.run.jobs import done
from tspec.run.gathered import gathered
from tspec.runtime.messages.findings import KEPT


def line(rule: str, step: int, count: int, subjects: tuple[str, ...] = ()) -> str:
    found = {
        "rule": rule,
        "step": step,
        "count": count,
        "ranks": [0],
        "at": [step, 0],
        "held": 0,
        "shards": {},
    }
    return (
        json.dumps(found | {"subjects": subjects, "reason": "", "values": {}, "location": None})
        + "\n"
    )


NOTHING = {"rank": 0, "groups": {}, "counts": {}, "reasons": {}, "faults": [], "stopped": ""}


def counted(path: Path, **counts: dict[str, int]) -> None:
    said = NOTHING | {"counts": counts}
    path.with_suffix(".counts.json").write_text(json.dumps(said))


def test_what_was_found_and_not_counted_counts(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text(line("a", 2, 1) + line("a", 3, 2) + line("b", 3, 1))
    (tmp_path / "2.jsonl").write_text(line("a", 2, 1))
    counted(tmp_path / "2.jsonl", a={"holds": 4, "violated": 1}, c={"holds": 0, "violated": 0})
    found = gathered(tmp_path)
    assert found.counts == {
        "a": {"holds": 4, "violated": 3},
        "b": {"violated": 1},
        "c": {"holds": 0, "violated": 0},
    }
    assert [one.step for one in found.verdicts.decided] == [2, 2, 3, 3]


def test_rules_with_more_violations_than_were_written_are_told(tmp_path: Path) -> None:
    for name, written in (("a", KEPT), ("b", KEPT), ("c", KEPT - 1)):
        lines = [line(name, 1 + number // 20, number) for number in range(1, written + 1)]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
        counted(tmp_path / f"{name}.jsonl", **{name: {"violated": 720 if name == "a" else written}})
    found = gathered(tmp_path)
    assert found.verdicts.cut_off == {"a"}
    assert found.counts["a"] == {"violated": 720}


MANY = """\
import torch

model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(20)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(15):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""
HELD = "edition 2026\nmodule t\nuse std.torch\ninvariant held { for p in parameters each step expect not p.requires_grad }\n"


@pytest.mark.slow
def test_a_report_says_that_more_was_violated_than_was_written(tmp_path: Path) -> None:
    """600 violations; the 500 that were written end before the last step."""
    (tmp_path / "train.py").write_text(MANY)
    (tmp_path / "t.tspec").write_text(HELD)
    ended = done(tmp_path, "-m", "tspec", "run", "t.tspec", "--", "train.py")
    said = " ".join(ended.stdout.split())
    assert "violated at least 500 times (the job wrote no more of them)" in said
    assert "last at step" not in said


def test_subjects_are_in_the_order_in_which_the_job_found_them(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text(
        line("b", 2, 1, ("z",))
        + line("b", 1, 2, ("y",))
        + line("b", 1, 3, ("a",))
        + line("a", 1, 1)
    )
    found = gathered(tmp_path).verdicts.decided
    assert [(one.step, *one.instance.subjects) for one in found] == [
        (1,),
        (1, "y"),
        (1, "a"),
        (2, "z"),
    ]


def test_a_finding_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    whole = line("a", 2, 1)
    for end in range(1, len(whole) - 1):
        (tmp_path / "1.jsonl").write_text(whole + whole[:end])
        assert len(gathered(tmp_path).verdicts.decided) == 1


def test_why_instances_were_idle_or_unknown_is_added_up(tmp_path: Path) -> None:
    for name, reasons in (("1", {"a": {"no group dp": 2}}), ("2", {"a": {"no group dp": 1}})):
        said = NOTHING | {"reasons": reasons}
        (tmp_path / f"{name}.jsonl").write_text("")
        (tmp_path / f"{name}.counts.json").write_text(json.dumps(said))
    assert gathered(tmp_path).reasons == {"a": {"no group dp": 3}}
