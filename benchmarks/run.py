"""`make bench`: run all benchmarks in turn and print their numbers; `--keep` writes them to results/."""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from measure import machine

HERE = Path(__file__).resolve().parent

BENCHMARKS = {
    "start": "start of the command line",
    "formatting": "formatting ten thousand lines",
    "compiling": "compiling 100 rules",
    "reviewing": "reviewing 1,000 rules",
    "checking": "checking a million events offline",
    "testing": "testing rules, changing them, asking why",
    "inferring": "drafting rules from two recordings",
    "folding": "folds over an epoch at its begin and its end",
    "layouts": "proofs for the shipped Megatron layouts",
    "preflight": "a dry run for one rank of 1,024",
    "jobs": "recording and running beside the plain run",
    "parts": "what the parts of recording and running take",
    "frameworks": "recording and running in real Trainer and Lightning jobs",
    "equivalence": "a whole equivalence over a plain step",
    "gathering": "a gather and a broadcast over Gloo's all-gather",
    "megatron": "the Megatron pack in jobs of megatron-core",
    "locations": "the line of the script with each call",
    "against_traincheck": "against TrainCheck 0.2.0 on one script",
}


def shown(command: list[str]) -> tuple[int, str]:
    """Run a benchmark, printing its lines as they come; its exit status and what it printed."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, "".join(lines)


def main() -> None:
    """Run the chosen benchmarks, or all, and print what each prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], help="which; all by default")
    parser.add_argument(
        "--keep", action="store_true", help="write the numbers to benchmarks/results/"
    )
    args = parser.parse_args()
    print(machine(), flush=True)
    failed = []
    for name in args.names or BENCHMARKS:
        print(f"\n{BENCHMARKS[name]}", flush=True)
        began = time.perf_counter()
        status, text = shown([sys.executable, "-u", str(HERE / f"{name}.py")])
        print(f"  (measured in {time.perf_counter() - began:.0f} s)", flush=True)
        if status:
            failed.append(name)
        elif args.keep:
            results = HERE / "results"
            results.mkdir(exist_ok=True)
            (results / f"{name}.txt").write_text(f"{machine()}\n\n{BENCHMARKS[name]}\n{text}")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
