"""A process that looks at damaged recordings one by one; it is started anew whenever it dies or hangs.

`python -m tests.faults.worker MODULE` reads one JSON value from each line, gives it to `look` of the
module, and writes what that returns as one line.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0
"""Seconds for one input; the machine may be busy."""
MEMORY = 8 * 2**30
"""Bytes of address space. What needs more of a small input is a failure, and must not end the machine."""


class Worker:
    """Asks a process, and starts it again after it ended. Close it with `with`."""

    def __init__(self, module: str) -> None:
        self._command = [sys.executable, "-m", "tests.faults.worker", module]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def ask(self, question: Mapping[str, Any]) -> tuple[str, str | None]:
        """The outcome of one input, and what is wrong with it; a process that dies is what is wrong."""
        process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return "", self._died()
        answer = self._line(process)
        if answer is None:
            self._end()
            return "", f"no answer in {PATIENCE:.0f} seconds"
        if not answer.endswith(b"\n"):
            return "", self._died()
        outcome, problem = json.loads(answer)
        return outcome, problem

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        return self._process

    def _line(self, process: subprocess.Popen[bytes]) -> bytes | None:
        """What it writes up to the end of a line or of its life; None if that takes too long."""
        assert process.stdout is not None
        line = b""
        end = time.monotonic() + PATIENCE
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return None
            more = os.read(process.stdout.fileno(), 1 << 16)
            if not more:
                return line
            line += more
        return line

    def _died(self) -> str:
        assert self._process is not None
        status = self._process.wait(PATIENCE)
        self._end()
        return f"the process died with status {status}"

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue


def main(module: str) -> None:
    """Answer until the questions end."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    look = importlib.import_module(module).look
    answers = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)  # What commands print is no answer.
    for line in sys.stdin.buffer:
        try:
            answer = look(**json.loads(line))
        except Exception:
            answer = "", traceback.format_exc()
        answers.write(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1])
