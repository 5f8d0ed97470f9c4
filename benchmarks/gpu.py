"""What rules and recording cost on a GPU, as a ratio to the plain run of the same job, and what reads of tensors cost.

    python benchmarks/gpu.py             all
    python benchmarks/gpu.py reads       a part of it: `reads`, `jobs` or `megatron`

Reads: all parameters of a GPT by the kernels of tspec, over the calls of torch that a CPU takes, and over the time in
which `torch._foreach_norm` reads the same bytes. Jobs (`tests/gpu/train.py`): steps after the first twenty, in turn, the
best of all rounds, with the waits for the device in a step. Megatron: the same with its pack, in a job of megatron-core
on one rank, without the stand-ins of the tests. Without a GPU it ends with an error.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from measure import PYTHON, ROOT, TSPEC, Command, once

TRAIN = str(ROOT / "tests/gpu/train.py")
PACK = str(ROOT / "specs/essentials")
CUDA = ("--device", "cuda", "--precision", "bf16", "--fused")
LARGE = (
    *("--width", "1024", "--layers", "12", "--vocabulary", "32768"),
    *("--context", "512", "--batch-size", "32"),
)
JOBS = {
    "50M parameters": (
        *("--width", "512", "--layers", "14", "--vocabulary", "8192"),
        *("--context", "256", "--batch-size", "16"),
    ),
    "220M parameters": LARGE,
    "0.7M parameters": (),
    "220M parameters, compiled": (*LARGE, "--compile", "default"),
}
MEGATRON = {
    "54M parameters": "bf16,zero,hidden=1024,vocabulary=20000,sequence=256,steps=33",
    "tiny": "bf16,zero,steps=33",
}
FIRST = 20
"""Steps of a Megatron job that are not measured."""
FEATURES = ("digest", "norm", "finite", "zeros", "min", "max", "mean", "std")


def best(function: Callable[[], object], rounds: int = 20) -> float:
    """The shortest time that a function takes, in seconds, the device's work included."""
    times = []
    for _ in range(rounds + 3):
        torch.cuda.synchronize()
        began = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times[3:])


def parameters(width: int, layers: int, dtype: torch.dtype) -> list[torch.Tensor]:
    """Tensors of the shapes of a GPT."""
    block = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)]
    vectors = [(width,)] * 4 + [(4 * width,), (width,)]
    shapes: Sequence[tuple[int, ...]] = [*((block + vectors) * layers), (32768, width)]
    return [torch.randn(shape, device="cuda").to(dtype) for shape in shapes]


def reads(rounds: int) -> None:
    """Print a line for each size and dtype."""
    from tspec.runtime.live import features
    from tspec.runtime.live.cuda import reads as kernels

    for name, width, layers in (("small", 64, 12), ("124M", 768, 12), ("1.3B", 2048, 24)):
        for dtype in (torch.float32, torch.bfloat16):
            held = parameters(width, layers, dtype)
            size = sum(each.numel() * each.element_size() for each in held)
            once_through = best(lambda held=held: torch._foreach_norm(held))
            ours = best(lambda held=held: kernels.read(held, FEATURES).read())
            digest = best(lambda held=held: kernels.read(held, ("digest",)).read())
            single = best(lambda held=held: features._columns(held, FEATURES), rounds)
            print(
                f"  {len(FEATURES)} features of {len(held)} tensors, {name} {str(dtype)[6:]}, {size / 1e6:.0f} MB:"
                f" {1e3 * ours:.2f} ms, digests alone {1e3 * digest:.2f};"
                f" by torch's calls {single / ours:.1f} times that;"
                f" {ours / once_through:.1f} times `_foreach_norm` ({1e3 * once_through:.2f} ms)",
                flush=True,
            )


def measured(start: Sequence[str], job: Sequence[str]) -> dict[str, float]:
    """What the job printed about its measured steps."""
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder, "printed")
        recording = Path(folder, "recording")
        words = [word.replace("RECORDING", str(recording)) for word in start]
        once(Command([*words, TRAIN, *CUDA, "--waits", *job], printed=printed))
        lines = [line for line in printed.read_text().splitlines() if line.startswith("{")]
    found: dict[str, float] = json.loads(lines[-1])
    return found


def jobs(rounds: int) -> None:
    """Print a line for each job."""
    ways = {
        "plain": [PYTHON],
        "run": [*TSPEC, "run", PACK, "--"],
        "record": [*TSPEC, "record", "-o", "RECORDING", "--"],
    }
    for name, job in JOBS.items():
        found = [{way: measured(start, job) for way, start in ways.items()} for _ in range(rounds)]
        took = {way: min(each[way]["seconds"] for each in found) for way in ways}
        waits = {way: found[-1][way]["waits"] for way in ways}
        print(
            f"  {name}: {1e3 * took['plain']:.1f} ms a step plain; the essentials"
            f" {took['run'] / took['plain']:.2f} times, recording {took['record'] / took['plain']:.2f} times;"
            f" waits for the device in a step: {waits['plain']:.1f}, {waits['run']:.1f}, {waits['record']:.1f}",
            flush=True,
        )


def megatron(rounds: int) -> None:
    """Print a line for each job of megatron-core."""
    os.environ["TESTS_ON_GPU"] = "1"
    train, pack = str(ROOT / "tests/megatron/train.py"), str(ROOT / "specs/megatron")
    ways = {"plain": [PYTHON], "run": [*TSPEC, "run", pack, "--"]}

    def step(start: list[str], layout: str) -> float:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "costs.json")
            once(Command([*start, train, layout, "--measure", str(path)]))
            steps = json.loads(path.read_text())[FIRST:]
        return sum(float(each["seconds"]) for each in steps) / len(steps)

    for name, layout in MEGATRON.items():
        took = {way: min(step(start, layout) for _ in range(rounds)) for way, start in ways.items()}
        print(
            f"  megatron-core, {name}: {1e3 * took['plain']:.1f} ms a step plain;"
            f" its pack {took['run'] / took['plain']:.2f} times",
            flush=True,
        )


def main() -> None:
    """Run the parts that the arguments name, or all."""
    parts = {"reads": reads, "jobs": jobs, "megatron": megatron}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="which; all by default")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU that torch can use")
    print(f"  {torch.cuda.get_device_name()}, torch {torch.__version__}, {os.cpu_count()} cores")
    for name in args.parts or parts:
        parts[name](args.rounds)


if __name__ == "__main__":
    main()
