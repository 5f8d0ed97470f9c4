"""The columnar checker: what the interpreter tests do not say of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.check.building import Writer, rules, tensor, trace
from tests.check.jobs import job
from tests.check.strategies import case, loaded, spec
from tspec.check.columnar import check
from tspec.check.columnar.truth import truth
from tspec.check.interpret import interpret
from tspec.trace.errors import TraceError
from tspec.trace.meta import write_meta
from tspec.trace.model import Trace
from tspec.trace.write import TraceWriter

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.mark.parametrize(
    "names",
    [
        ("test_claims", "test_moments", "test_values"),
        pytest.param(("test_instances", "test_time"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_every_line_of_the_page_holds_in_queries_too(names: tuple[str, ...]) -> None:
    """Verdicts, reasons, shown values, steps and notes, and no rule is left to the interpreter."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.check.both"]
    command += ["-p", "no:cacheprovider", *(f"tests/check/{name}.py" for name in names)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def write(folder: Path, job: Trace) -> Path:
    write_meta(folder, job.world)
    for stream in job.streams:
        with TraceWriter(folder, stream.rank) as writer:
            writer.add_all(stream.records)
    return folder


@pytest.mark.parametrize("number", range(0, 40, 5))
def test_a_folder_is_decided_as_the_trace_that_was_written(number: int, tmp_path: Path) -> None:
    body, shape = case(number)
    these, trace = loaded(spec([body])), job(shape)
    written, in_memory = check(these, write(tmp_path, trace)), check(these, trace)
    assert [e.ranks for e in written.ends_early] == [e.ranks for e in in_memory.ends_early]
    # A trace in memory has no files, and no end marks.
    assert replace(written, ends_early=()) == replace(in_memory, ends_early=())


def test_rules_of_one_frame_are_decided_as_each_alone() -> None:
    bodies = [
        "for p in parameters each step expect p.lr > 0",
        "for p in parameters each step when p.lr > 0 expect changed(p.data)",
        "for p in parameters each step expect p.lr == previous(p.lr)",
        "for p in parameters each step expect all(p.lr > 0, over: 2 steps)",
    ]
    together = rules(*bodies)
    apart = [found for rule in together for found in check([rule], STEPS).decided]
    assert check(together, STEPS).decided == tuple(apart)
    assert Counter(each.verdict for each in apart) == Counter(
        {"holds": 14, "violated": 8, "idle": 1, "unknown": 5}
    )


def steps() -> Trace:
    out = Writer()
    for step, lr in ((1, 0.5), (2, 0.5), (3, 0.0), (4, 0.25)):
        out.step(step)
        out.sample("parameter", "w", lr=lr, data=tensor(step))
        if step > 2:
            out.sample("parameter", "b", lr=1.0, data=tensor(7))
    out.finish()
    return trace(out)


STEPS = steps()


def test_findings_only_counts_the_rules_that_nothing_violates() -> None:
    these = rules(
        "for p in parameters each step expect p.lr >= 0",
        "for p in parameters each step expect p.lr > 0",
        "for m in modules each step expect m.training",
    )
    whole, short = check(these, STEPS), check(these, STEPS, findings_only=True)
    assert {each.instance.rule for each in short.decided} == {"t.r1"}
    assert short.decided == tuple(e for e in whole.decided if e.instance.rule == "t.r1")
    assert [(c.rule, c.ranks, c.verdict, c.instances) for c in short.counted] == [
        ("t.r0", (0,), "holds", 7)
    ]
    assert {each.instance.rule for each in whole.decided} == {"t.r0", "t.r1"}


@pytest.mark.parametrize("number", range(0, 60, 3))
def test_truth_is_that_of_the_verdicts(number: int) -> None:
    """Rules of one head have the same numbers for the same instances; others have others."""
    body, shape = case(number)
    these, trace = loaded(spec([body, body])), job(shape)
    verdicts = [
        each for each in check(these, trace).decided if each.verdict in ("holds", "violated")
    ]
    (said,) = truth(these, [trace])
    first, second = (sorted(said.of[rule.name]) for rule in these)
    assert first == second
    if said.failed:
        return
    decided = [each for each in verdicts if each.instance.rule == these[0].qualified]
    assert Counter(holds for _, holds in first) == Counter(e.verdict == "holds" for e in decided)
    assert len({key for key, _ in first}) == len(decided)


@pytest.mark.parametrize("number", range(0, 60, 6))
def test_several_traces_decided_together_are_each_as_alone(number: int) -> None:
    """Their ranks are numbered on, and rules across ranks keep to their own trace."""
    body, shape = case(number)
    these = loaded(spec([body, body]))
    traces = [job(shape), job(case(number + 1)[1]), job(case(number + 2)[1])]
    for each, together in zip(traces, truth(these, traces), strict=True):
        (alone,) = truth(these, [each])
        assert together.failed == alone.failed
        for rule in these:
            said, wanted = together.of[rule.name], alone.of[rule.name]
            assert Counter(holds for _, holds in said) == Counter(holds for _, holds in wanted)
            assert len({key for key, _ in said}) == len({key for key, _ in wanted})
        first, second = (sorted(together.of[rule.name]) for rule in these)
        assert first == second


def test_a_field_of_two_types_in_two_traces_is_decided_in_each_alone() -> None:
    traces = []
    for label in (1, "x"):
        out = Writer()
        out.step(1)
        out.sample("parameter", "w", label=label)
        out.finish()
        traces.append(trace(out))
    these = rules(
        "extend entity parameter { label: string }",
        'for p in parameters each step expect p.label == "x"',
        "for p in parameters each step expect present(p.label)",
    )
    number, name = truth(these, traces)
    assert (number.failed, name.failed) == ((), ())
    assert [[holds for _, holds in name.of[rule]] for rule in ("r1", "r2")] == [[True], [True]]
    assert [[holds for _, holds in number.of[rule]] for rule in ("r1", "r2")] == [[False], [True]]
    assert name.of["r1"] == name.of["r2"]
    assert {key for key, _ in number.of["r1"]} == {key for key, _ in number.of["r2"]}


def test_what_no_query_says_goes_to_the_interpreter_and_is_noted() -> None:
    out = Writer()
    out.step(1)
    # Values of one field that are now numbers, now text: a column has one type.
    out.sample("parameter", "w", label=1)
    out.sample("parameter", "b", label="x")
    out.finish()
    these = rules(
        "extend entity parameter { label: string }",
        'for p in parameters each step expect p.label == "x"',
    )
    found = check(these, trace(out))
    assert found.decided == interpret(these, trace(out)).decided
    assert [each.verdict for each in found.decided] == ["holds", "violated"]
    assert [each.name for each in truth(these, [trace(out)])[0].failed] == ["r1"]
    assert found.notes == (
        "t.r1: decided by the interpreter (a field holds values of several kinds (int, string))",
    )


def test_integers_too_long_for_a_column_go_to_the_interpreter() -> None:
    out = Writer()
    out.step(1)
    out.sample("parameter", "w", order=2**62)
    out.finish()
    these = rules("for p in parameters each step expect p.order * p.order > p.order")
    found = check(these, trace(out))
    assert [each.verdict for each in found.decided] == ["holds"]
    assert "decided by the interpreter" in found.notes[0]


def test_who_waited_for_what_is_said(tmp_path: Path) -> None:
    ahead, behind, gone = Writer(0), Writer(1), Writer(2)
    for out in (ahead, behind, gone):
        out.step(5)
        out.call("all_reduce")
    ahead.begin("all_reduce")
    behind.begin("all_gather")
    gone.call("all_reduce")
    gone.step(6)
    found = check(rules("each step expect step > 0"), trace(ahead, behind, gone, world=4))
    assert found.notes == (
        "rank 0 waits in all_reduce #2 of step 5: rank 1 waits in all_gather #1 of step 5; "
        "rank 2 came back from it",
        "rank 1 waits in all_gather #1 of step 5: rank 0 waits in all_reduce #2 of step 5; "
        "rank 2 never came to it; its last record is of step 6",
    )


def test_a_torn_tail_is_said(tmp_path: Path) -> None:
    folder = write(tmp_path, STEPS)
    path = folder / "rank-0.arrow"
    path.write_bytes(path.read_bytes()[:-8] + b"\xff\xff\xff\xff\x10")
    found = check(rules("each step expect step > 0"), folder)
    [ends] = found.ends_early
    assert (ends.ranks, ends.file) == (range(1), str(path))
    assert ends.ending is not None
    assert (ends.ending.how, ends.ending.torn) == ("torn", 5)


def test_no_trace_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"holds no `rank-\*\.arrow`"):
        check(rules("each step expect step > 0"), tmp_path)


def test_an_empty_trace_has_no_instances() -> None:
    found = check(rules("each step expect step > 0"), Trace((), 1))
    assert found.decided == ()
