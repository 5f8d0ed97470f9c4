"""A process that reads damaged recordings, so that a crash ends it and not the tests.

    python -m tests.trace.reader

Reads lines of JSON, `{"folder": ..., "check": bool}`, and answers each with a line: either `error`, the
message of a TraceError, or `fault`, a traceback, or what was read.
"""

from __future__ import annotations

import hashlib
import json
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.trace.bits import bits
from tspec.trace.errors import TraceError
from tspec.trace.model import Stream
from tspec.trace.read import read_trace
from tspec.trace.show import summary, text


def answer(folder: Path, check: bool) -> dict[str, Any]:
    """What was read, or why not."""
    try:
        trace = read_trace(folder)
        shown = text(summary(folder)).replace(str(folder), "DIR")
        if check:
            decide(folder)
    except TraceError as error:
        return {"error": str(error)}
    except Exception:
        return {"fault": traceback.format_exc()}
    return {
        "streams": [
            {
                "rank": stream.rank,
                "how": stream.ending.how if stream.ending else "",
                "words": stream.ending.words if stream.ending else "",
                "records": len(stream.records),
                "digests": digests(stream),
            }
            for stream in trace.streams
        ],
        "job": [trace.world, dict(trace.meta)],
        "shown": shown,
    }


def digests(stream: Stream) -> list[str]:
    """Of each beginning of a stream's records."""
    held = hashlib.sha256()
    found = [held.hexdigest()[:16]]
    for record in stream.records:
        held.update(repr(bits(record)).encode("utf-8", "backslashreplace"))
        found.append(held.hexdigest()[:16])
    return found


def decide(folder: Path) -> None:
    """Check a rule over the recording, by queries and one record after another."""
    from tests.check.building import rules
    from tspec.check.columnar import check
    from tspec.check.interpret import interpret

    these = rules("for p in parameters each step expect changed(p.data)")
    check(these, folder)
    interpret(these, read_trace(folder))


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        said = answer(Path(asked["folder"]), asked["check"])
        print(json.dumps(said), flush=True)
