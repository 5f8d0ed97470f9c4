"""Runs commands of tspec in forks of a process that has imported torch and tspec, and read the shipped packs.

A new interpreter needs some two seconds of a core for these imports, twice for `tspec run`: its own
process and the script's. Tests of what rules find and of what commands print use forks; tests of
how processes start, are followed and end do not.

One such process serves one process of tests, over a socket. A request is a command as JSON, with its
standard streams; the answer is the exit status.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from tests.warm_client import ask

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 800
"""Seconds for one command; the machine may be busy."""
IMPORTED = (
    "jinja2",
    "pydantic",
    "rich.console",
    "sklearn.datasets",  # scripts train on its digits
    "torch._dynamo",  # optimizers import it
    "torch.distributed",
    "torch.utils.data",
    "tspec.cli.app",
    "tspec.cli.record",
    "tspec.cli.run",
    "tspec.config.read",
    "tspec.record.start",
    "tspec.report.build",
    "tspec.report.collect",
    "tspec.resolve.packs",
    "tspec.run.child",
    "tspec.run.start",
    "tspec.runtime.checker",
    "tspec.runtime.live.follow",
    "tspec.runtime.live.script",
    "tspec.targets.adapters",
)


def run(
    *arguments: str, cwd: Path = ROOT, env: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """Run `tspec` with arguments to its end."""
    with (
        open(os.devnull) as nothing,
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
    ):
        streams = [each.fileno() for each in (nothing, out, err)]
        status = ask(str(folder() / "socket"), arguments, env, str(cwd), streams)
        for each in (out, err):
            each.seek(0)
        return subprocess.CompletedProcess(arguments, status, out.read(), err.read())


@cache
def folder() -> Path:
    """The folder of the socket, for `PATH`: it has a command `tspec` that is run in forks too."""
    place = Path(tempfile.mkdtemp(prefix="tspec-warm-"))
    client = Path(__file__).with_name("warm_client.py").read_text(encoding="utf-8")
    command = place / "tspec"
    command.write_text(f"#!{sys.executable} -IS\n{client}", encoding="utf-8")
    command.chmod(0o755)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "socket"))
    listener.listen()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.warm", str(listener.fileno())],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        pass_fds=[listener.fileno()],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    listener.close()

    def end() -> None:
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate()
        shutil.rmtree(place)

    atexit.register(end)
    return place


def serve(listener: socket.socket) -> NoReturn:
    """Answer each request in a fork, until the process of tests ends."""
    for name in IMPORTED:
        importlib.import_module(name)
    packs: Any = sys.modules["tspec.resolve.packs"]
    packs.packs()  # reads the shipped modules: those that a command uses are not read anew
    start: Any = sys.modules["tspec.run.start"]
    start.supervised = _forked
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        request, _ = listener.accept()
        if not os.fork():
            _end(_answer, request)
        request.close()
    sys.exit()


def _answer(to: socket.socket) -> None:
    """Run a command in a fork of this one, and answer with its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, streams, _, _ = socket.recv_fds(to, 1, 3)
    request = json.loads(b"".join(iter(lambda: to.recv(65536), b"")))
    process = os.fork()
    if not process:
        to.close()
        for stream, file in enumerate(streams):
            os.dup2(file, stream)
            os.close(file)
        _end(_command, request)
    to.sendall(str(_waited(process, PATIENCE)).encode())


def _command(request: Mapping[str, Any]) -> None:
    """Become the process of a request."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = ["-m", *request["arguments"]]
    sys.path[0] = request["cwd"]
    runpy.run_module("tspec", run_name="__main__", alter_sys=True)


@contextmanager
def _forked(arguments: Sequence[str]) -> Iterator[int]:
    """In place of `supervised`: the script's process is a fork too. Signals are not passed on."""
    from tspec.run.supervise import HEARD

    sys.stdout.flush()
    sys.stderr.flush()
    reads, writes = os.pipe()
    supervisor = os.getpid()
    process = os.fork()
    if not process:
        os.environ[HEARD] = f"{supervisor}:{writes}"
        _end(_text, arguments)
    os.close(writes)
    os.close(reads)
    yield _waited(process)


def _text(arguments: Sequence[str]) -> None:
    """Run `-c text` with arguments."""
    option, text, *rest = arguments
    assert option == "-c"
    sys.argv = ["-c", *rest]
    exec(text, {"__name__": "__main__"})


def _waited(process: int, seconds: int = 0) -> int:
    """The exit status of a fork, negative for a signal. It is ended after so many seconds."""
    signal.signal(signal.SIGALRM, lambda number, frame: os.kill(process, signal.SIGKILL))
    signal.alarm(seconds)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    signal.alarm(0)
    return status


def _end(run: Callable[[Any], None], given: Any) -> NoReturn:
    """Run a function in this fork, and end it as an interpreter ends."""
    atexit._clear()
    status = 0
    try:
        try:
            run(given)
        except SystemExit as leaving:
            status = leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
        except BaseException:
            traceback.print_exc()
            status = 1
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
