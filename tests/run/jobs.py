"""Jobs that are started as a user would start them, with a cache folder of their own."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 400
"""Seconds; the machine may be busy."""
TRAIN = """\
import os, signal, sys, time
import torch
import torch.distributed as dist

how = sys.argv[1:]
rank = int(os.environ.get("RANK", "0"))
if "WORLD_SIZE" in os.environ:
    dist.init_process_group("gloo")
print(f"begun {rank}", flush=True)
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
wrapped = torch.nn.parallel.DistributedDataParallel(model) if dist.is_initialized() else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1, 9):
    if "late" in how and step == 2 and rank == 0:
        time.sleep(4)
    if "clear" in how:
        optimizer.zero_grad()
    loss = wrapped(torch.randn(3, 4)).square().mean()
    loss.backward()
    if "poison" in how and step == 4 and rank == 1:
        model.weight.grad.fill_(1e9)
    optimizer.step()
    if step == 5 and rank == int(os.environ.get("ON", "0")):
        if "leave" in how:
            os._exit(0)
        if "leave-3" in how:
            os._exit(3)
        if "segfault" in how:
            os.kill(os.getpid(), signal.SIGSEGV)
        if "killed" in how:
            os.kill(os.getpid(), signal.SIGKILL)
        if "wait" in how:
            print("READY", os.getpid(), flush=True)
            time.sleep(60)
if "end" in how:
    os._exit(0)
if dist.is_initialized() and "destroy" in how:
    dist.destroy_process_group()
print("trained")
"""
CLEARED = "each step\nwhen step > 1\nexpect contains optimizer.zero_grad\n"
SMALL = "before optimizer.step\nexpect norm(parameters.grad) < 1e6\n"


def job(folder: Path, **rules: str) -> Path:
    """A folder with a script and rules by name."""
    (folder / "train.py").write_text(TRAIN)
    text = "edition 2026\n\nmodule checks\n\nuse std.torch\n"
    for name, body in rules.items():
        text += f"\n/// It trains well.\ninvariant {name} {{\n{body}}}\n"
    (folder / "checks.tspec").write_text(text)
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    """This process's, with a cache folder below `folder` and one thread."""
    left_out = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "XDG_RUNTIME_DIR")
    own = {"XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1", "TSPEC_TIMEOUT": "20"}
    return {k: v for k, v in os.environ.items() if k not in left_out} | own | more


def tspec_run(
    *how: str, options: tuple[str, ...] = (), script: Sequence[str] = ("train.py",)
) -> list[str]:
    """`-m tspec run` with the job's rules and script, or with `-m module ARGS` as the script."""
    report = ("--report", "report.json")
    return ["-m", "tspec", "run", "checks.tspec", *report, *options, "--", *script, *how]


def start(folder: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """The interpreter with arguments, in the folder."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(folder, **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears_signals,
    )


def hears_signals() -> None:
    """As from a terminal: what a shell starts in the background ignores them, what `nohup` starts hangups, and so do
    their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def done(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The same, to its end."""
    process = start(folder, *arguments, **more)
    try:
        said, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, said, errors)


def torchrun(*options: str, ranks: int = 2) -> list[str]:
    """`-m torch.distributed.run` with that many ranks on this node."""
    return ["-m", "torch.distributed.run", f"--nproc-per-node={ranks}", *options]


def free_port() -> int:
    """A port of 127.0.0.1 that is free just now, below those that connections get by themselves (`ip(7)`)."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def reported(folder: Path) -> list[dict[str, Any]]:
    """The findings of the report."""
    found: list[dict[str, Any]] = json.loads((folder / "report.json").read_text())
    return found


def left(folder: Path, pattern: str = "*.jsonl") -> list[Path]:
    """Files that are left in the cache folder."""
    return sorted((folder / "cache" / "tspec").rglob(pattern))


def until(true: Callable[[], Any]) -> Any:
    """Wait until something is true; what it is."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not become true")
