"""A dry run against a layout: clean jobs are as it says, and each kind of fault is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.families import EXHAUSTIVE, family
from tspec.cli.app import app

HERE = Path(__file__).parent
JOB = str(HERE / "job.py")


def preflight(layout: str, *arguments: str, file: Path = HERE / "layouts.tspec") -> tuple[int, str]:
    """The exit status, and what was printed on a wide screen."""
    command = ["preflight", str(file), "--layout", layout, *arguments]
    ended = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    return ended.exit_code, ended.stdout + ended.stderr


@pytest.mark.slow
@pytest.mark.gloo
def test_a_thousand_ranks_are_as_the_layout_says() -> None:
    status, said = preflight("whole", "--mesh", "dp=512", "--rank", "1023", "--", JOB)
    last = "6 parameters and activations of 4 modules are as the layout says"
    assert (status, said.splitlines()[-1]) == (0, last), said
    assert "layout whole: rank 1023 of 1024\n" in said
    assert "allreduce over tp, in modules: 1 call, 4,096 elements\n" in said
    assert "allreduce over tp, in the backward pass: 1 call, 4,096 elements\n" in said
    assert "allreduce over dp, outside of modules: 6 calls, 4,201,472 elements\n" in said
    assert "parameters 16.8 MB, gradients 16.8 MB, states 33.6 MB" in said
    assert "activations at most" in said


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "word"),
    [("whole", "--ddp"), pytest.param("sharded", "--fsdp", marks=pytest.mark.exhaustive)],
)
def test_what_torch_adds_up_is_known(layout: str, word: str) -> None:
    status, said = preflight(layout, "--rank", "3", "--tensors", "real", "--", JOB, word)
    modules = "4 modules" if layout == "whole" else "1 module"
    last = f"6 parameters and activations of {modules} are as the layout says"
    assert (status, said.splitlines()[-1]) == (0, last), said


PART = "which cuts the dimension of `fc1.weight` that the backward pass sums over"
SUM = "which cuts the dimension that `fc2.weight` sums over"


@pytest.mark.gloo
@pytest.mark.parametrize(
    ("layout", "words", "found"),
    [
        ("whole", "--forget --no-sum --cut-again", [
            "output fc1: it has shape [1, 1024], and [2, 1024] of [8, 2048] in the layout",
            "output fc2: it has shape [1, 2048], and [2, 2048] of [8, 2048] in the layout",
            "norm.weight: its gradient is not added up over `dp`, which cuts the data",
            f"fc2: its output is not added up over `tp`, {SUM}",
        ]),
        pytest.param("whole", "--ddp --again --two-sums", [
            "norm.weight: its gradient is added up over `dp` more than once, by DistributedDataParallel and allreduce",
            "fc2: its output is added up over `tp` 2 times in 1 call",
        ], marks=EXHAUSTIVE),
        ("whole", "--no-back", [
            f"fc1: the gradient of its input is not added up over `tp`, {PART}",
        ]),
        pytest.param("whole", "--ddp --two-back", [
            "fc1: the gradient of its input is added up over `tp` more than once",
        ], marks=EXHAUSTIVE),
        pytest.param("sharded", "--fsdp --no-sync", [
            f"{name}: its gradient is not added up over `dp`, which cuts the data"
            for name in ("fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight", "norm.bias", "norm.weight")
        ], marks=pytest.mark.slow),
        pytest.param("whole", "--wrong-shape", [
            "fc1.bias: it has shape [512], and [1024] of [2048] in the layout",
            "fc1.weight: it has shape [512, 2048], and [1024, 2048] of [2048, 2048] in the layout",
            "fc2.weight: it has shape [2048, 512], and [2048, 1024] of [2048, 2048] in the layout",
            "output fc1: it has shape [2, 512], and [2, 1024] of [8, 2048] in the layout",
        ], marks=EXHAUSTIVE),
    ],
)  # fmt: skip
def test_faults_are_named(layout: str, words: str, found: list[str]) -> None:
    status, said = preflight(layout, "--rank", "3", "--", JOB, *words.split())
    lines = [line for line in said.splitlines() if line.startswith("rank 3: ")]
    assert sorted(lines) == sorted(f"rank 3: {each}" for each in found), said
    assert status == 1


@pytest.mark.slow
def test_what_cannot_run_is_said(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise RuntimeError('out of luck')\n")
    status, said = preflight("whole", "--rank", "0", "--", str(script))
    assert status == 2
    assert "\nRuntimeError: out of luck\n" in said
    assert "rank 0 of 8 ended with status 1" in said
    status, said = preflight("whole", "--mesh", "pp=2", "--", str(script))
    assert (status, "has no axis `pp`" in " ".join(said.split())) == (2, True)
    for sizes in (("tp=4,dp=8",), ("tp=4", "--mesh", "dp=8")):
        _, said = preflight("whole", "--mesh", *sizes, "--rank", "31", "--", str(script))
        assert "rank 31 of 32 ended with status 1" in said
    _, said = preflight("whole", "--mesh", "tp=4", "--mesh", "tp=8", "--", str(script))
    assert "write it as `tp=2,dp=4`" in said


@pytest.mark.slow
def test_the_cause_of_an_error_is_shown_before_what_came_of_it(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    calls = "\n".join(f"def f{n}():\n    f{n - 1}()" for n in range(1, 20))
    script.write_text(
        "def f0():\n    raise ValueError('the cause')\n"
        f"{calls}\n"
        "try:\n    f19()\nexcept ValueError as why:\n    raise RuntimeError('what came of it') from why\n"
    )
    status, said = preflight("whole", "--rank", "0", "--", str(script))
    assert status == 2
    assert said.index("ValueError: the cause") < said.index("RuntimeError: what came of it")


PADDED = """edition 2026

module padded

mesh ranks {
  order: dp
  dp: 4
}

dims ranks {
  hidden: 8
  classes: 10
}

layout padded on ranks {
  param "weight": [classes padded to MULTIPLE / dp, hidden]
}
"""
SHARDED = """import torch
from torch import nn
from torch.distributed import init_process_group
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

init_process_group("gloo")
model = nn.Linear(8, 10, bias=False)
fully_shard(model, mesh=init_device_mesh("cpu", (4,), mesh_dim_names=("dp",)))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(2, 8)).sum().backward()
    optimizer.step()
"""
PLAIN = "".join(line for line in SHARDED.splitlines(True) if not line.startswith("fully_shard("))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "multiple", "rank", "wrong"),
    [
        (SHARDED, "dp", 0, ""),
        (SHARDED, "dp", 3, ""),  # it has one row of three
        (SHARDED, "4 * dp", 3, "weight: it has shape [1, 8], and [4, 8] of [10, 8] in the layout"),
        (PLAIN.replace("10", "4"), "4 * dp", 3, ""),
        (PLAIN.replace("10", "3"), "4 * dp", 3, "weight: it has shape [3, 8], and [4, 8]"),
    ],
    ids=["first", "last", "another multiple", "with its padding", "of another size"],
)
def test_pieces_with_padding(
    script: str, multiple: str, rank: int, wrong: str, tmp_path: Path
) -> None:
    """`fully_shard` keeps a shard without its padding; by hand a rank has it."""
    (tmp_path / "script.py").write_text(script)
    (tmp_path / "padded.tspec").write_text(PADDED.replace("MULTIPLE", multiple))
    status, said = preflight(
        *("padded", "--rank", str(rank), "--", str(tmp_path / "script.py")),
        file=tmp_path / "padded.tspec",
    )
    assert (status, wrong in said) == (1 if wrong else 0, True), said


OVER_ALL_RANKS = """
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = torch.nn.Linear(8, 32)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(16, 8)).sum().backward()
    optimizer.step()
"""
ITS_LAYOUT = """edition 2026

module over_all_ranks

mesh ranks {
  order: dp
  dp: 4
}

layout sharded on ranks {
  param "weight": [32 / dp, 8]
  param "bias": [32 / dp]
}
"""


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
def test_fully_shard_makes_its_default_mesh(tmp_path: Path) -> None:
    script, layout = tmp_path / "over_all_ranks.py", tmp_path / "over_all_ranks.tspec"
    script.write_text(OVER_ALL_RANKS)
    layout.write_text(ITS_LAYOUT)
    status, said = preflight("sharded", "--rank", "3", "--", str(script), file=layout)
    last = "2 parameters are as the layout says"
    assert (status, said.splitlines()[-1]) == (0, last), said


NORM_OF_A_PART = """
import sys
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
norm = nn.LayerNorm(8, bias=False)
model = nn.Sequential(norm, nn.Linear(8, 16, bias=False), nn.Linear(16, 8, bias=False))
rows = RowwiseParallel(output_layouts=Shard(1))
parallelize_module(model, mesh, {"1": ColwiseParallel(input_layouts=Shard(1)), "2": rows})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(4, 3, 8)).square().sum().backward()
    if "sum" in sys.argv:
        dist.all_reduce(norm.weight.grad)
    optimizer.step()
"""
OF_A_PART = """edition 2026

module norm.of_a_part

mesh ranks {
  order: tp
  tp: 2
}

dims ranks {
  hidden: 8
  wide: 16
}

layout plan on ranks {
  param "0.weight": [hidden] replicated tp
  param "1.weight": [wide / tp, hidden]
  param "2.weight": [hidden, wide / tp]
  input "0": [batch, seq / tp, hidden]
}
"""


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.parametrize("word", [pytest.param("sum", marks=pytest.mark.exhaustive), "none"])
def test_activations_that_are_scattered_on_the_way_back_are_no_sum_of_a_gradient(
    word: str, tmp_path: Path
) -> None:
    """Each rank has a part of the sequence, and a norm that is no DTensor."""
    job, file = tmp_path / "job.py", tmp_path / "norm.tspec"
    job.write_text(NORM_OF_A_PART)
    file.write_text(OF_A_PART)
    status, said = preflight("plan", "--tensors", "real", "--", str(job), word, file=file)
    wrong = "ranks 0, 1: 0.weight: its gradient is not added up over `tp`, which cuts the data"
    right = "3 parameters and activations of 1 module are as the layout says"
    last = said.splitlines()[-1]
    assert (status, last) == ((0, right) if word == "sum" else (1, wrong)), said


REDUCED_LATE = """edition 2026

module late

mesh ranks {
  order: dp
  dp: 4
}

dims ranks {
  inputs: 8
  classes: 10
}

layout late on ranks replicated dp {
  param "0.weight": [classes, inputs]
  param "0.bias": [classes]
  input "0": [BATCH, inputs]
  output "0": [BATCH, classes]
}
"""
REDUCES_IN_ITS_STEP = """import sys

import torch
import torch.distributed as dist
from torch import nn


class Reducing(torch.optim.SGD):
    def step(self, closure=None):
        gradients = [each.grad for group in self.param_groups for each in group["params"]]
        flat = torch.cat([each.flatten() for each in gradients])
        if "--forget" not in sys.argv:
            dist.all_reduce(flat)
        for each, reduced in zip(gradients, flat.split([each.numel() for each in gradients])):
            each.copy_(reduced.view_as(each) / dist.get_world_size())
        norms = [torch.empty(2) for _ in range(dist.get_world_size())]
        dist.all_gather(norms, torch.stack([each.norm() for each in gradients]))
        return super().step(closure)


dist.init_process_group("gloo")
model = nn.Sequential(nn.Linear(8, 10))
optimizers = [Reducing(model.parameters(), lr=0.1, momentum=0.9)]
if "--two" in sys.argv:
    optimizers.append(torch.optim.SGD([nn.Parameter(torch.ones(3))], lr=0.1))
for _ in range(2):
    model(torch.randn(6, 8)).square().mean().backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.gloo
@pytest.mark.parametrize("batch", family(("batch / dp", "(batch, 4 / dp)"), (), {"batch / dp"}))
def test_an_update_may_add_up_gradients_itself(batch: str, tmp_path: Path) -> None:
    """Also of samples that ranks get in turn. States are those of all optimizers."""
    spec, script = tmp_path / "late.tspec", tmp_path / "script.py"
    spec.write_text(REDUCED_LATE.replace("BATCH", batch))
    script.write_text(REDUCES_IN_ITS_STEP)
    status, said = preflight("late", "--rank", "1", "--", str(script), "--two", file=spec)
    assert (status, "parameters and activations of" in said) == (0, True), said
    assert "allreduce over dp, outside of modules: 1 call, 90 elements" in said
    assert "allgather over dp, outside of modules: 1 call, 2 elements" in said
    assert "states 360 bytes" in said
    status, said = preflight("late", "--rank", "1", "--", str(script), "--forget", file=spec)
    missing = [
        f"rank 1: 0.{name}: its gradient is not added up over `dp`, which cuts the data"
        for name in ("bias", "weight")
    ]
    assert sorted(line for line in said.splitlines() if line.startswith("rank 1: ")) == missing
    assert status == 1
