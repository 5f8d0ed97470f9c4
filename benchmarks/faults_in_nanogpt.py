"""Faults put into a clone of nanoGPT, one at a time, and what finds each: the essentials, and drafts of clean runs.

    benchmarks/faults_in_nanogpt.py CLONE [FAULT...]

CLONE is a clone of karpathy/nanoGPT. Two clean copies with other seeds and sizes are recorded, and `tspec infer` drafts
rules from them. Then each copy with a fault runs under `tspec run specs/essentials DRAFTS`, and a row of the table in
`docs/programs.md` is printed: the fault, then the finding that points at it first, by a rule of the essentials and by a
draft, with its step and its line. The first row is a clean run of a third seed and size. A fault is a textual change of
one place; nothing else is changed but the seed. The text to train on is Python's own reference.
"""

import argparse
import array
import json
import os
import pickle
import pydoc_data.topics
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import TSPEC
from programs import PACK, revision


@dataclass(frozen=True, slots=True)
class Fault:
    """One change of one file of the clone: the first `old` becomes `new`."""

    name: str
    file: str
    old: str
    new: str


FAULTS = (
    Fault("learning rate not handed to the optimizer", "train.py", "['lr'] = lr", "['lr']"),
    Fault("loss not divided by the accumulation", "train.py", "loss = loss / grad", "loss / grad"),
    Fault("input and output embeddings untied", "model.py", "wte.weight = self", "wte.weight; self"),
    Fault("attention without its causal mask", "model.py", "is_causal=True", "is_causal=False"),
    Fault("labels are the inputs, unshifted", "train.py", "i+1:i+1+block_size", "i:i+block_size"),
    Fault("labels shifted twice", "train.py", "i+1:i+1+block_size", "i+2:i+2+block_size"),
    Fault("gradients never cleared", "train.py", "optimizer.zero_grad(", "dict("),
    Fault(
        "gradients cleared within the accumulation",
        "train.py",
        "        X, Y = get_batch('train')",
        "        X, Y = get_batch('train'); optimizer.zero_grad()",
    ),
    Fault(
        "one batch for all micro-batches",
        "train.py",
        "        X, Y = get_batch('train')",
        "        X, Y = get_batch('train') if micro_step else (X, Y)",
    ),
    Fault("evaluation in training mode", "train.py", "model.eval()", "pass"),
    Fault("training in evaluation mode", "train.py", "model.train()", "pass"),
    Fault("optimizer holds half the parameters", "model.py", "if p.requires_grad}", "if '0' in pn}"),
    Fault("no clipping", "train.py", "if grad_clip != 0.0", "if False"),
    Fault("model in bfloat16", "train.py", "model.to(device)", "model.to(torch.bfloat16)"),
    Fault(
        "attention computed without a graph",
        "model.py",
        "y = self.resid_dropout(self.c_proj(y))",
        "y = self.resid_dropout(self.c_proj(y)).detach()",
    ),
    Fault(
        "learning rate a thousand times too large", "train.py", "['lr'] = lr", "['lr'] = lr * 1000"
    ),
)  # fmt: skip

COMMON = (
    "--device=cpu",
    "--dtype=float32",
    "--compile=False",
    "--dataset=topics",
    "--eval_interval=20",
    "--eval_iters=2",
    "--n_head=2",
    "--dropout=0.1",
    "--warmup_iters=10",
    "--max_iters=60",
    "--lr_decay_iters=60",
    "--log_interval=1000",
)


@dataclass(frozen=True, slots=True)
class Size:
    """What a run has of its own."""

    seed: int
    batch: int
    block: int
    width: int
    layers: int
    micro_batches: int

    def options(self) -> list[str]:
        return [
            f"--batch_size={self.batch}",
            f"--block_size={self.block}",
            f"--n_embd={self.width}",
            f"--n_layer={self.layers}",
            f"--gradient_accumulation_steps={self.micro_batches}",
        ]


SIBLINGS = (Size(7, 4, 32, 32, 2, 2), Size(8, 6, 24, 48, 3, 4))
"""The runs of which drafts are made."""

TRIED = Size(9, 5, 40, 64, 2, 3)
"""The run that faults are put into."""


def copy(clone: Path, folder: Path, size: Size, fault: Fault | None) -> Path:
    """A copy of the clone with the seed of a run and a fault. Raises RuntimeError if a place is not there."""
    shutil.copytree(clone, folder, ignore=shutil.ignore_patterns(".git", "out*", "data"))
    write_data(folder / "data/topics")
    change(folder / "train.py", "manual_seed(1337", f"manual_seed({size.seed}")
    if fault is not None:
        change(folder / fault.file, fault.old, fault.new)
    return folder


def change(file: Path, old: str, new: str) -> None:
    """Put `new` in the place of the first `old` of a file. Raises RuntimeError if there is none."""
    text = file.read_text()
    if old not in text:
        raise RuntimeError(f"{file.name} has no {old!r}: another revision?")
    file.write_text(text.replace(old, new, 1))


def write_data(folder: Path) -> None:
    """Pages of Python's reference, character by character, as nanoGPT's own scripts prepare texts."""
    folder.mkdir(parents=True)
    text = "".join(pydoc_data.topics.topics[name] for name in sorted(pydoc_data.topics.topics))
    text = text[:120_000]
    letters = sorted(set(text))
    number = {letter: place for place, letter in enumerate(letters)}
    tokens = array.array("H", [number[letter] for letter in text])
    (folder / "train.bin").write_bytes(tokens[:100_000].tobytes())
    (folder / "val.bin").write_bytes(tokens[100_000:].tobytes())
    (folder / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": len(letters)}))


def tspec(arguments: Sequence[str], folder: Path, statuses: tuple[int, ...] = (0,)) -> None:
    """Run a command of tspec in a folder. Raises RuntimeError, with what it printed, if it fails."""
    done = subprocess.run(
        [*TSPEC, *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    if done.returncode not in statuses:
        raise RuntimeError(f"tspec {arguments[0]} gave {done.returncode}:\n{done.stdout[-2000:]}")


def script(size: Size) -> list[str]:
    return ["--", "train.py", *COMMON, *size.options()]


def drafted(clone: Path, folder: Path) -> Path:
    """Rules drafted from the siblings."""
    recordings = [str(folder / f"recording{number}") for number, _ in enumerate(SIBLINGS)]
    for number, (size, recording) in enumerate(zip(SIBLINGS, recordings, strict=True)):
        program = copy(clone, folder / f"sibling{number}", size, None)
        tspec(["record", "-o", recording, *script(size)], program)
    tspec(["infer", *recordings, "-o", str(folder / "drafts.tspec")], folder)
    return folder / "drafts.tspec"


def first(findings: Sequence[dict], file: str) -> str:
    """Rule, step and line of the finding that comes first among those of a file of rules."""
    own = [
        found
        for found in findings
        if (Path(found["file"]).name == "drafts.tspec") == (file == "drafts")
    ]
    if not own:
        return "-"
    found = min(own, key=lambda each: each["step"])
    place = found["location"]
    line = f", {Path(place['file']).name}:{place['line']}" if place else ""
    others = len({each["rule"] for each in own}) - 1
    more = f" and {others} more" if others else ""
    return f"`{found['rule'].rpartition('.')[2]}` (step {found['step']}{line}){more}"


def row(clone: Path, drafts: Path, folder: Path, fault: Fault | None) -> str:
    """The row of one run."""
    program = copy(clone, folder, TRIED, fault)
    report = program / "report.json"
    options = ["--no-config", "--fail-on", "never", "--report", str(report)]
    tspec(["run", *options, str(PACK), str(drafts), *script(TRIED)], program, (0, 1))
    findings = [each for found in json.loads(report.read_text()) for each in unfolded(found)]
    name = "none" if fault is None else fault.name
    return f"| {name} | {first(findings, 'essentials')} | {first(findings, 'drafts')} |"


def unfolded(found: dict) -> list[dict]:
    """A finding, and those that follow from it."""
    return [found, *(each for below in found["consequences"] for each in unfolded(below))]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clone", type=Path)
    parser.add_argument("faults", nargs="*", help="words of the names of those to try; all if none")
    args = parser.parse_args()
    clone = args.clone.resolve()
    tried = [each for each in FAULTS if not args.faults or any(w in each.name for w in args.faults)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        drafts = drafted(clone, folder)
        print(f"nanoGPT {revision(clone)}, {drafts.read_text().count('draft invariant')} drafts\n")
        print("| fault | essentials | drafts |\n| --- | --- | --- |")
        for number, fault in enumerate((None, *tried)):
            print(row(clone, drafts, folder / f"tried{number}", fault), flush=True)


if __name__ == "__main__":
    main()
