"""Small recordings, written by hand: a loop with or without its `zero_grad`, and the rule that tells them apart."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tspec.trace.meta import write_meta
from tspec.trace.model import Begin, Boundary, Context, End, Finish, Record, Sample, Tensor
from tspec.trace.write import TraceWriter

CLEARED = """\
/// Gradients left over from the last step would be added to this one's.
invariant gradients_are_cleared {
  each step
  when step > 1
  expect contains optimizer.zero_grad
  else warn
}
"""


def record_loop(folder: Path, *, steps: int = 4, clears: bool = True) -> Path:
    """A trace of one rank, with one parameter, whose loop clears gradients or forgets to."""
    events = ["optimizer.zero_grad"] * clears + ["backward", "optimizer.step"]
    records: list[Record] = [
        Sample(
            0,
            Context(),
            "parameter",
            "fc.weight",
            {"name": "fc.weight", "data": Tensor(digest=1, norm=1.0, finite=True)},
        )
    ]
    seq, call = 1, 0
    for step in range(1, steps + 1):
        context = Context(step=step)
        records.append(Boundary(seq, context, "step", step))
        for event in events:
            records.append(Begin(seq + 1, context, call, None, event, event, {}))
            records.append(End(seq + 2, context, call, {}))
            seq, call = seq + 2, call + 1
        seq += 1
    records.append(Finish(seq, Context(step=steps)))
    folder.mkdir()
    write_meta(folder, 1)
    with TraceWriter(folder, 0) as writer:
        writer.add_all(records)
        writer.flush()
    return folder


def record_ranks(
    folder: Path, *, ends: Mapping[int, str], world: int = 2, forgets: int = 3
) -> Path:
    """A trace of four steps on several ranks, without `zero_grad` in step `forgets`.

    `ends` says by rank how its recording ends: `killed`, `torn` or `stopped` in step 3,
    `damaged` in step 4, `empty`, `no batch` or `missing`; the others finish.
    """
    folder.mkdir()
    write_meta(folder, world)
    for rank in range(world):
        how = ends.get(rank, "")
        if how != "missing":
            _record_rank(folder, rank, how, list(_batches(world, forgets)))
    return folder


def _record_rank(folder: Path, rank: int, how: str, batches: list[list[Record]]) -> None:
    if how in ("killed", "torn", "stopped"):
        batches = batches[:-1]
    with TraceWriter(folder, rank) as writer:
        for batch in batches:
            writer.add_all(batch)
            writer.flush()
        whole = writer.path.stat().st_size
        if how in ("", "damaged"):
            writer.add(Finish(10_000, Context(step=4)))
        elif how == "torn":
            writer.add(Boundary(10_000, Context(step=4), "step", 4))
    content = writer.path.read_bytes()
    kept = {"killed": whole, "torn": whole + 100, "empty": 0, "no batch": 3000}
    if how == "damaged":
        content = (
            content[: whole - 300] + bytes([content[whole - 300] ^ 1]) + content[whole - 299 :]
        )
    writer.path.write_bytes(content[: kept.get(how, len(content))])


def _batches(world: int, forgets: int) -> Iterator[list[Record]]:
    weight = {"name": "fc.weight", "data": Tensor(digest=1, norm=1.0, finite=True)}
    group = {"ranks": tuple(range(world))}
    yield [
        Sample(0, Context(), "parameter", "fc.weight", weight),
        Sample(0, Context(), "group", "world", group),
    ]
    for step in range(1, 5):
        context, seq = Context(step=step), step * 100
        events = ["optimizer.zero_grad"] * (step != forgets) + ["backward", "optimizer.step"]
        records: list[Record] = [Boundary(seq, context, "step", step)]
        for number, event in enumerate(events):
            call = seq + number
            records.append(Begin(seq + 2 * number + 1, context, call, None, event, event, {}))
            records.append(End(seq + 2 * number + 2, context, call, {}))
        yield records
