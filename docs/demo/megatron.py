"""What `make demo-megatron` runs: a tensor-parallel GPT of megatron-core with one silent bug, compared with one device.

Every command is printed as a user would type it, with what it wrote to standard output. The exit status is 1 if the
bug is missed or the sound job is accused.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from shown import typed

ROOT = Path(__file__).resolve().parents[2]
RUNS = Path("runs/demo-megatron")
TRAIN = "tests/megatron/train.py"
BUG = "embedding_mask_not_applied"
MODULE = "embedding.word_embeddings"
CHECK = ("run", "tests/equivalence/megatron.tspec", "--equivalence", "tensor_parallel")
LAYOUT = "tp={tp},dp={dp},pp={pp},sp={sp},passes=2,steps=1"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """A command in the repository, to its end."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def losses(name: str, *options: str) -> list[float]:
    """Train ten steps on two ranks; the loss of each."""
    report = RUNS / f"{name}.json"
    done = run(TRAIN, "tp=2", "--report", str(report), *options)
    if done.returncode:
        sys.exit(done.stdout)
    return [step["loss"] for step in json.loads((ROOT / report).read_text())]


def show_losses(sound: Future[list[float]], faulty: Future[list[float]]) -> None:
    """Both loss curves, which tell nothing."""
    print("A GPT on two tensor-parallel ranks, and the same with a bug in it")
    print(f"({BUG}):\n")
    print("  step   loss   with the bug")
    for step, (good, bad) in enumerate(zip(sound.result(), faulty.result(), strict=True), 1):
        print(f"  {step:4} {good:6.3f}   {bad:12.3f}")
    print("\nBoth fall, and all ranks agree. Is it the model of one device?\n", flush=True)


def check(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Compare a job with one device, with a page of what was found."""
    page = str(RUNS / f"{name}.html")
    command = (*CHECK, "--report", page, "--", TRAIN, LAYOUT, *options)
    done = run("-m", "tspec", *command)
    print(f"$ {typed(('tspec', *command))}\n{done.stdout}", flush=True)
    return done


def failures(sound: subprocess.CompletedProcess[str], faulty: str, page: Path) -> Sequence[str]:
    """What is not as it is to be."""
    named = faulty.partition("wrong by itself")[2]
    found = {
        "the sound job is accused": sound.returncode != 0,
        "the bug is missed": f"  {MODULE}: forward pass" not in named,
        "there is no page": not page.is_file(),
    }
    return [what for what, is_so in found.items() if is_so]


def main() -> None:
    start = time.monotonic()
    shutil.rmtree(ROOT / RUNS, ignore_errors=True)
    (ROOT / RUNS).mkdir(parents=True)
    with ThreadPoolExecutor(2) as pool:
        sound, faulty = pool.submit(losses, "sound"), pool.submit(losses, "bug", "--bug", BUG)
        show_losses(sound, faulty)
    silent, found = check("sound"), check("bug", "--bug", BUG)
    page = ROOT / RUNS / "bug.html"
    wrong = failures(silent, found.stdout, page)
    for each in wrong:
        print(f"NOT AS IT IS TO BE: {each}")
    print(f"{time.monotonic() - start:.0f} s. Errors against depth: {page}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
