"""All layouts of clean jobs, with the packs that ship: none of them is to report anything.

    python -m tests.megatron.sweep [--only TEXT] > docs/megatron_clean.md

It runs each job of `CLEAN` under `tspec run` and prints a row for it; the exit status is 1 if any has a finding.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tests import sweeps
from tests.megatron.jobs import TRAIN
from tests.megatron.layouts import Layout
from tests.sweeps import Swept

OPENING = """# Clean Megatron jobs under the packs

Each row is a job of the released megatron-core 0.16.1 on CPU and gloo, with nothing put in, for six steps, or as many as it says, under the packs
essentials, megatron, communication, data_parallel, checkpoints and moe. [The job's words](design/megatron.md#what-runs) say how it is
laid out and which model it has. *Decided* are instances of rules. Seconds are those of a machine that had other work.
[What is put into these jobs](megatron_faults.md), and [their numbers against those of one device](megatron_sweep.md), are on pages of
their own. Printed by:

    python -m tests.megatron.sweep > docs/megatron_clean.md

"""
PACKS = ("essentials", "megatron", "communication", "data_parallel", "checkpoints", "moe")
LLAMA = "kv=2,swiglu,rms,rope"
MOE = "experts=4,ep=2"

CLEAN = (
    # One process
    "bf16,recompute",
    "fp16",
    f"{LLAMA},untied,dropout",
    "experts=4",
    # Tensor and sequence parallelism
    "tp=2",
    "tp=2,bf16",
    "tp=2,fp16",
    "tp=2,untied,dropout",
    f"tp=2,{LLAMA},untied",
    "tp=2,sp",
    "tp=2,sp,bf16,warmup=3",
    "tp=2,sp,recompute,dropout",
    f"tp=2,sp,{LLAMA}",
    "tp=2,qknorm",
    "tp=2,padded,vocabulary=150,sp,bf16",
    "tp=4",
    "tp=4,sp,bf16",
    # Pipelines
    "pp=2",
    "pp=2,bf16",
    "pp=2,fp16,untied",
    "pp=2,first=1,untied",
    "pp=2,recompute,warmup=2",
    "pp=2,virtual=2",
    f"pp=2,virtual=2,bf16,untied,{LLAMA}",
    "pp=4",
    "pp=4,bf16,untied,dropout",
    # Data parallelism
    "dp=2",
    "dp=2,bf16,warmup=2",
    "dp=2,fp16",
    "dp=2,tokens,untied",
    "dp=2,overlap",
    "dp=2,fp16,tokens,overlap",
    "dp=2,zero",
    "dp=2,zero,bf16,recompute",
    "dp=2,zero,fp16",
    "dp=2,zero,overlap,bf16",
    "dp=2,zero,overlap,gather",
    "dp=2,zero,overlap,gather,bf16",
    "dp=2,zero,overlap,gather,fp16",
    "dp=2,frozen",
    "dp=4",
    "dp=4,zero,bf16",
    # Context parallelism
    "cp=2",
    "cp=2,fp16,dropout",
    "cp=2,zero,bf16,recompute",
    f"cp=2,{LLAMA},untied",
    "cp=4,rope",
    "tp=2,cp=2,bf16",
    "tp=2,cp=2,sp,zero,rope",
    "cp=2,pp=2,virtual=2,bf16",
    "cp=2,dp=2,tokens,overlap",
    "cp=2,dp=2,zero,overlap,gather,bf16",
    f"cp=2,{MOE}",
    "tp=2,cp=2,sp,experts=4,etp=2,bias",
    f"tp=2,cp=2,pp=2,sp,zero,bf16,{LLAMA}",
    # Experts
    f"dp=2,{MOE}",
    f"dp=2,{MOE},bf16,untied",
    f"dp=2,{MOE},zero,bf16",
    "dp=2,experts=4",
    f"dp=4,{MOE}",
    "tp=2,sp,experts=4,etp=2",
    "tp=2,sp,experts=4,etp=2,bias",
    f"tp=2,sp,{MOE}",
    f"dp=2,{MOE},capacity",
    "pp=2,virtual=2,experts=4,dropout",
    # Prediction of further tokens
    "mtp=2,rope,bf16,steps=12",
    "tp=2,sp,mtp=1,rope,recompute",
    "pp=2,mtp=1,rope,untied",
    "pp=2,virtual=2,mtp=1,rope,untied,bf16",
    f"dp=2,{MOE},mtp=1,rope,zero",
    # Several at once
    "tp=2,pp=2",
    f"tp=2,pp=2,sp,bf16,{LLAMA},untied",
    "tp=2,pp=2,virtual=2,sp,recompute",
    "tp=2,dp=2,overlap",
    "tp=2,dp=2,sp,zero,bf16,warmup=2",
    "pp=2,dp=2",
    "pp=2,dp=2,zero,bf16",
    "pp=2,dp=2,virtual=2,overlap",
    "pp=2,dp=2,zero,overlap,gather,bf16",
    f"pp=2,dp=2,{MOE},untied",
    # On eight processes
    "tp=2,pp=2,dp=2,bf16",
    "tp=4,dp=2,sp,zero,bf16",
    "pp=4,dp=2,untied",
    f"tp=2,pp=2,dp=2,sp,zero,{MOE}",
    # Long enough for rules of each tenth step, and for experts without tokens
    "tp=2,sp,recompute,dropout,steps=12",
    f"pp=2,virtual=2,bf16,untied,{LLAMA},steps=12",
    "dp=2,zero,overlap,gather,bf16,steps=12",
    f"dp=2,{MOE},steps=12",
    "tp=2,pp=2,sp,steps=12",
    "experts=32,passes=1,sequence=32,steps=125",
)
"""Layouts of jobs without a fault."""

STEPS = 6
"""Where a layout does not say how many."""


def layout_of(text: str) -> Layout:
    """A layout of `CLEAN`, with its steps."""
    return Layout.parse(f"steps={STEPS},{text}")


def swept(text: str, folder: Path) -> Swept:
    """Run the packs on a layout of `CLEAN`. What the report holds goes to a folder."""
    layout = layout_of(text)
    return sweeps.swept(str(layout), layout.world, PACKS, (TRAIN, str(layout)), folder)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="layouts that hold this text")
    args = parser.parse_args()
    sweeps.print_table((text for text in CLEAN if args.only in text), swept, OPENING)


if __name__ == "__main__":
    main()
