"""A command `tspec` for shells: it asks the process of `tests/warm.py` beside whose socket it is put."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence


def ask(
    at: str,
    arguments: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    streams: Sequence[int],
) -> int:
    """Run `tspec` with arguments and streams; its exit status, negative for a signal."""
    request = {"arguments": arguments, "env": dict(env), "cwd": cwd}
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(at)
        socket.send_fds(to, [b"3"], streams)
        to.sendall(json.dumps(request).encode())
        to.shutdown(socket.SHUT_WR)
        return int(to.recv(16))


if __name__ == "__main__":
    here = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "socket")
    status = ask(here, sys.argv[1:], os.environ, os.getcwd(), (0, 1, 2))
    sys.exit(status if status >= 0 else 128 - status)
