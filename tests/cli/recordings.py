"""Small recordings, written by hand: a loop with or without its `zero_grad`."""

from pathlib import Path

from tspec.trace.model import Begin, Boundary, Context, End, Finish, Record, Sample, Tensor
from tspec.trace.write import TraceWriter, write_meta


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
