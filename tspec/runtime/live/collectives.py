"""The message about a collective that raised: usually another rank of its group never reached it."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.runtime.edges import WatchedCall


def failed(rank: int, calls: Sequence[WatchedCall], tensor_name: object) -> str:
    """The message for a collective that raised. `calls` are that one call, once for each event that names it."""
    call = calls[0]
    group = next((each.fields["group"] for each in calls if "group" in each.fields), None)
    ranks = ", ".join(map(str, group)) if isinstance(group, tuple) else "unknown"
    tensor = f" of {tensor_name}" if isinstance(tensor_name, str) else ""
    place = f" at {call.location.file}:{call.location.line}" if call.location else ""
    return (
        f"rank {rank}: {call.callable}{tensor} raised {call.error} in step {call.context.step}{place}. Its group has the"
        f" ranks {ranks}. If it waited for another rank, that one has ended, makes other calls, or names another group"
    )
