"""The words of `tspec trace show`."""

from __future__ import annotations

import re
from pathlib import Path

from tspec.trace.meta import write_meta
from tspec.trace.model import Begin, Boundary, Context, End, Finish, Sample, Tensor
from tspec.trace.show import summary, text
from tspec.trace.write import TraceWriter


def record(folder: Path, rank: int, steps: int, finish: bool, worker: int | None = None) -> Path:
    with TraceWriter(folder, rank, worker) as writer:
        for step in range(1, steps + 1):
            now = Context(step, 1 + step // 4)
            writer.add(Boundary(step * 10, now, "step", step))
            writer.add(
                Begin(step * 10 + 1, now, step, None, "optimizer.step", "SGD.step", {"lr": 0.1})
            )
            writer.add(End(step * 10 + 2, now, step, {}))
            for name in ("conv.weight", "conv.bias"):
                data = Tensor(digest=step, norm=1.0)
                writer.add(Sample(step * 10 + 2, now, "parameter", name, {"data": data}))
            writer.add(Sample(step * 10 + 3, now, "context", "", {"loss": 0.5}))
            writer.flush()
        writer.add(Sample(900, Context(steps, 1), "group", "world", {"ranks": (0, 1)}))
        if finish:
            writer.add(Finish(901, Context(steps, 1)))
    return writer.path


def test_summary_as_text(tmp_path: Path) -> None:
    run = tmp_path / "run"
    record(run, 0, 12, finish=True)
    record(run, 0, 2, finish=False, worker=0)
    torn = record(run, 1, 7, finish=False)
    torn.write_bytes(torn.read_bytes()[:-20])
    write_meta(run, 3, {"script": "train.py --epochs 1"})
    found = summary(run)
    assert found.missing_ranks == (range(2, 3),)
    shown = text(found).replace(str(run), "run")
    shown = re.sub(r" [\d.]+ kB", lambda size: " " + "#" * (len(size[0]) - 4) + " kB", shown)
    shown = re.sub(r"[\d,]+ bytes torn", "N bytes torn", shown)
    assert [line.rstrip() for line in shown.splitlines()] == EXPECTED.strip("\n").splitlines()


def test_the_text_keeps_to_80_columns(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, 0) as writer:
        for call in range(60):
            event = f"torch.nn.functional.function_{'x' * (call % 11)}{call}"
            writer.add(Begin(call, Context(1), call, None, event, event, {}))
    lines = text(summary(tmp_path)).splitlines()
    assert max(len(line) for line in lines[1:]) <= 80
    assert sum(line.count("function_") for line in lines) == 60
    assert not any(re.match(r"  \d", line) for line in lines), "a count without its name"


def test_an_empty_stream_is_shown(tmp_path: Path) -> None:
    (tmp_path / "rank-0.arrow").write_bytes(b"")
    assert "cut off" in text(summary(tmp_path))


EXPECTED = """
run: 129 records, ##### kB, 3 ranks
  script: train.py --epochs 1

stream           records  size     steps  epochs  end
rank 0           74       #### kB  1-12   1-4     finished
rank 0 worker 0  13       #### kB  1-2    1-1     no normal end
rank 1           42       #### kB  1-7    1-2     cut off, N bytes torn
rank 2           -        -        -      -       not recorded

calls by event:
  optimizer.step 21

subjects by kind:
  parameter 2

known at every moment:
  loss

groups:
  world

`tspec explain NAME` says what a name means, and which module to `use` for it
"""
