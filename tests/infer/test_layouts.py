"""Drafts of layouts: from tensors of two runs, from DTensor placements, from megatron-core."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from tests.families import EXHAUSTIVE
from tests.jobs import done
from tests.megatron.layouts import Layout
from tests.megatron.shipped import of_the_job
from tspec.cli.app import app
from tspec.infer.layouts.emit import draft
from tspec.infer.layouts.fit import placement
from tspec.infer.layouts.shards import Found, Remark, ShardIndices, Unknown
from tspec.layout.differences import differences
from tspec.layout.faults import checked
from tspec.layout.shards import indices
from tspec.layout.sizes import Sizes
from tspec.resolve import load
from tspec.resolve.program.sharding import LayoutDeclaration, Shape, Tie

ROOT = Path(__file__).parents[2]


def drafted(file: Path, *arguments: str) -> tuple[str, str]:
    """What the command wrote, and what it said on standard error."""
    ended = CliRunner().invoke(app, ["infer", "--layout", "draft", "-o", str(file), *arguments])
    assert ended.exit_code == 0, ended.output
    return file.read_text(), " ".join(ended.stderr.split())


def layout_in(file: Path) -> LayoutDeclaration:
    """The layout of a file; its shards tile their tensors."""
    program = checked(load([file])).program
    assert program is not None
    [found] = program.layouts
    return found


def halves(tensor: torch.Tensor, rank: int) -> torch.Tensor:
    return tensor.chunk(2)[rank].clone()


PLAN = """edition 2026

module plan

mesh plan {
  order: ranks
  ranks: 2
}

layout plan on plan {
  param "fc2.bias": [4] replicated ranks
  param "fc1.weight": [(16, 2) / ranks, 8]
  param "fc1.bias": [32 / ranks]
  param "fc2.weight": [4, 32 / ranks]
}
"""
CUTS = {
    "layers.0.qkv": ("layers.*.qkv", "[size_24 / tp, size_4] replicated dp"),
    "gated": ("gated", "[(2, size_8 / tp), size_4] replicated dp"),
    "grouped": (
        "grouped",
        "[(size_12 / tp) + (size_4 / tp) + (size_4 / tp), size_4] replicated dp",
    ),
    "embedding": ("embedding", "[size_10 padded to 4 * tp / tp, size_4] replicated dp"),
    "columns": ("columns", "[size_4, size_8 / tp] replicated dp"),
    "both": ("both", "[size_8 / dp, size_8 / tp]"),
    "norm": ("norm", "[size_8] replicated tp, dp"),
    "positions": ("positions", "[size_16 / zigzag(tp), size_4] replicated dp"),
    "summand": ("summand", "[size_4, size_4] partial tp replicated dp"),
    "uneven": ("uneven", "[size_7 padded to tp / tp, size_4] replicated dp"),
}


def rank_of(full: dict[str, torch.Tensor], tp: int, dp: int) -> dict[str, torch.Tensor]:
    """What one rank of a job that cuts in many ways has of the full tensors."""
    chunks = full["positions"].chunk(4)
    other = torch.arange(16.0).reshape(4, 4)
    return {
        "layers.0.qkv": halves(full["layers.0.qkv"], tp),
        "layers.1.qkv": halves(full["layers.1.qkv"], tp),
        "gated": torch.cat([halves(each, tp) for each in full["gated"].chunk(2)]),
        "grouped": torch.cat([halves(each, tp) for each in full["grouped"].split((12, 4, 4))]),
        "embedding": halves(torch.cat([full["embedding"], torch.zeros(6, 4)]), tp),
        "columns": halves(full["columns"].T, tp).T.contiguous(),
        "both": halves(halves(full["both"], dp).T, tp).T.contiguous(),
        "norm": full["norm"],
        "positions": torch.cat([chunks[tp], chunks[3 - tp]]),
        "summand": other if tp else full["summand"] - other,
        "uneven": full["uneven"][:4] if tp == 0 else full["uneven"][4:],
        "ragged": full["ragged"][:3] if tp == 0 else full["ragged"][3:],
        "zeros": full["zeros"][:4],
        "shuffled": full["shuffled"][[0, 3, 5, 6] if tp == 0 else [1, 2, 4, 7]],
        "new": torch.ones(2),
    }


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(0.0, id="same bits", marks=EXHAUSTIVE),
        pytest.param(1e-6, id="round-off", marks=EXHAUSTIVE),
        pytest.param(1e-2, id="bfloat16"),
    ],
)
def test_data_tells_how_tensors_are_cut(noise: float, tmp_path: Path) -> None:
    rows = {
        "layers.0.qkv": 24, "layers.1.qkv": 24, "gated": 16, "grouped": 20, "embedding": 10, "columns": 4, "both": 8,
        "positions": 16, "summand": 4, "uneven": 7, "ragged": 7, "shuffled": 8,
    }  # fmt: skip
    numbers = torch.Generator().manual_seed(0)
    full = {
        name: torch.randn(size, 8 if name in ("columns", "both") else 4, generator=numbers)
        for name, size in rows.items()
    }
    norm = torch.randn(8, generator=numbers) if noise else torch.ones(8)
    full |= {"norm": norm, "zeros": torch.zeros(8)}
    torch.save({"model": full}, tmp_path / "full.pt")
    shards = tmp_path / "shards"
    shards.mkdir()
    for rank in range(4):
        held = rank_of(full, rank % 2, rank // 2)
        moved = {
            name: each + noise * torch.randn(each.shape, generator=numbers)
            for name, each in held.items()
        }
        torch.save(moved, shards / f"rank-{rank}.pt")
    arguments = ("--full", str(tmp_path / "full.pt"), "--mesh", "tp=2,dp=2", str(shards))
    text, said = drafted(tmp_path / "draft.tspec", *arguments)
    for pattern, cut in CUTS.values():
        assert f'  param "{pattern}": {cut}\n' in text
    assert "`ragged`: shards of dimension 0 have different lengths, 3 and 4 of 7" in said
    gives_none = "what rank 0 holds is near no cut of the full tensor"
    gives_none = (
        gives_none if noise else "no cut over `tp` gives what the ranks hold of dimension 0"
    )
    assert f"`shuffled`: {gives_none}" in said
    assert ("the nearest cut; numbers differ by 1e-02 of their spread" in text) == (noise > 1e-3)
    assert "`zeros`: all its elements are alike, and do not tell which of them a rank holds" in said
    assert "`new`: the run on one device has no tensor of that name" in said
    assert layout_in(tmp_path / "draft.tspec").mesh.axes == (("tp", 2), ("dp", 2))
    for command in (["lint"], ["fmt", "--check"]):
        assert CliRunner().invoke(app, [*command, str(tmp_path / "draft.tspec")]).exit_code == 0


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "full.pt")
    (tmp_path / "rank-0.pt").write_text("no tensors")
    shards = tmp_path / "shards"
    shards.mkdir()
    torch.save({"w": torch.ones(1)}, shards / "rank-1.pt")
    for arguments, words in (
        (("--full", "full.pt", "shards"), "has no files of ranks 0 to n - 1"),
        (("--full", "rank-0.pt", "shards"), "has no files of ranks"),
        ((), "--ranks"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            ended = CliRunner().invoke(app, ["infer", "--layout", "a", "-o", "a.tspec", *arguments])
        assert ended.exit_code == 2
        assert words in " ".join(ended.stderr.split())


@pytest.mark.slow
def test_placements_tell_how_parameters_are_cut(tmp_path: Path) -> None:
    """The hand-written layout of the same plan says the same."""
    script = ROOT / "tests/equivalence/placements.py"
    drafted(tmp_path / "draft.tspec", "--ranks", "2", "--", str(script), "--plan")
    found = layout_in(tmp_path / "draft.tspec")
    assert [each.pattern for each in found.placements] == [
        "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias",
    ]  # fmt: skip
    (tmp_path / "plan.tspec").write_text(PLAN)
    said = differences(found, layout_in(tmp_path / "plan.tspec"))
    assert [each.name for each in said if each.old is not None] == []
    (tmp_path / "wrong.tspec").write_text(PLAN.replace("[4, 32 / ranks]", "[4 / ranks, 32]"))
    [wrong] = differences(found, layout_in(tmp_path / "wrong.tspec"))
    assert (wrong.name, wrong.old and wrong.old.pattern) == ("fc2.weight", "fc2.weight")


@pytest.mark.slow
def test_what_the_last_ranks_have_less_of_is_padding(tmp_path: Path) -> None:
    """`fully_shard` cuts three classes into parts of two and one, and into three parts of one and none."""
    script = ROOT / "tests/equivalence/placements.py"
    for ranks, padded in ((2, 4), (4, 4)):
        file = tmp_path / f"draft_{ranks}.tspec"
        text, said = drafted(file, "--ranks", str(ranks), "--", str(script), "--uneven")
        assert "Not found" not in text + said
        assert 'param "fc2.weight": [size_3 padded to ranks / ranks, size_32]' in text
        [weight] = [p for p in layout_in(file).placements if p.pattern == "fc2.weight"]
        sizes = Sizes({"size_3": 3, "size_32": 32}, {"ranks": ranks})
        assert isinstance(weight.shape, Shape)
        cut = weight.shape.dimensions[0]
        assert [*chain(*(indices(cut, {"ranks": r}, sizes) for r in range(ranks)))] == [
            *range(padded)
        ]


def test_zeros_of_uneven_parts_are_told_by_their_lengths(tmp_path: Path) -> None:
    torch.save({"bias": torch.zeros(5), "odd": torch.zeros(5)}, tmp_path / "full.pt")
    shards = tmp_path / "shards"
    shards.mkdir()
    for rank, (bias, odd) in enumerate(((2, 1), (2, 2), (1, 1), (0, 1))):
        torch.save({"bias": torch.zeros(bias), "odd": torch.zeros(odd)}, shards / f"{rank}.pt")
    arguments = ("--full", str(tmp_path / "full.pt"), "--mesh", "dp=4", str(shards))
    text, said = drafted(tmp_path / "draft.tspec", *arguments)
    assert 'param "bias": [size_5 padded to dp / dp]' in text
    assert "`odd`: all its elements are alike, and do not tell" in said


@pytest.mark.slow
def test_a_plain_tensor_that_is_whole_on_one_rank_alone_is_left_out(tmp_path: Path) -> None:
    """One process of two ranks shows no more of it than a shape."""
    script = ROOT / "tests/equivalence/sequence_parallel.py"
    text, said = drafted(tmp_path / "draft.tspec", "--ranks", "2", "--", str(script))
    layout = layout_in(tmp_path / "draft.tspec")
    assert {each.pattern.split(".")[-2] for each in layout.placements} == {
        "embedding", "norm1", "norm2", "mlp", "norm", "head",
    }  # fmt: skip
    query = (
        "`blocks.*.attention.q.weight`: it is a plain tensor of [8, 16], and [16, 16] on one rank"
    )
    assert query in said
    assert "Not found: `blocks.*.mlp.down.weight`" in " ".join(text.split())


@pytest.mark.slow
def test_experts_that_one_rank_has_and_others_have_not_are_told(tmp_path: Path) -> None:
    script = ROOT / "tests/equivalence/expert_parallel.py"
    _, said = drafted(tmp_path / "draft.tspec", "--ranks", "2", "--", str(script))
    missing = (
        "`blocks.*.moe.experts.*.down.bias`: one rank has it, and rank 0 of 2 has none of that"
    )
    assert missing in said


def test_a_tensor_of_two_stages_is_on_the_first_and_said_to_be_tied(tmp_path: Path) -> None:
    whole = ((0, 1, 2, 3),)
    held = {"words": {0: whole, 1: whole}, "layers.0": {0: whole}, "layers.1": {1: whole}}
    tensors = tuple(ShardIndices(f"{name}.weight", (4,), each, ()) for name, each in held.items())
    made = draft(Found((("tp", 1), ("pp", 2)), tensors), "two", "two")
    (tmp_path / "draft.tspec").write_text(made.text)
    layout = layout_in(tmp_path / "draft.tspec")
    assert [[each.prefix for each in stage.modules] for stage in layout.stages] == [
        ["words", "layers.0"],
        ["layers.1"],
    ]
    assert (
        "Assumed: `words.weight`: on stage 0, and under the same name on stage 1: a copy"
        in made.text
    )


def stages_in(layout: LayoutDeclaration) -> list[tuple[int, int, str, str]]:
    """Numbers, chunks, and the first and last module of each stage."""
    return [
        (each.number, each.chunk, each.modules[0].prefix, each.modules[-1].prefix)
        for each in layout.stages
    ]


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "stages"),
    [
        ("GPipe", [(0, 0, "embed", "blocks."), (1, 0, "blocks.", "head")]),
        ("Interleaved1F1B", [
            (0, 0, "embed", "blocks.0"), (1, 0, "blocks.1", "blocks.1"),
            (0, 1, "blocks.2", "blocks.2"), (1, 1, "blocks.3", "head"),
        ]),
    ],
)  # fmt: skip
def test_torchs_stages_tell_what_they_hold(
    schedule: str, stages: list[tuple[int, int, str, str]], tmp_path: Path
) -> None:
    """A stage waits for what another one says of the tensors that it sends; its parameters are known before."""
    script = str(ROOT / "tests/equivalence/pipelined.py")
    job = ("--ranks", "2", "--", script, "--schedule", schedule)
    _, said = drafted(tmp_path / "draft.tspec", *job)
    found = layout_in(tmp_path / "draft.tspec")
    assert (said, found.mesh.axes) == ("", (("pp", 2),))
    assert stages_in(found) == stages


STAGES_OF_A_MESH = """
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("stages", "replicas"))
stage = mesh["stages"].get_local_rank()
whole = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8))
part = whole[:2] if stage == 0 else whole[OF]
model = DistributedDataParallel(part, process_group=mesh["replicas"].get_group())
group = mesh["stages"].get_group()
schedule = ScheduleGPipe(
    PipelineStage(model, stage, 2, torch.device("cpu"), group=group), 2, loss_fn=nn.MSELoss()
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    schedule.step(*([torch.ones(4, 8)] if stage == 0 else []), target=torch.ones(4, 8))
    optimizer.step()
"""


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
def test_stages_of_a_device_mesh_are_cut_over_its_axis(tmp_path: Path) -> None:
    """Each rank holds the whole model too, of which its stage is a part."""
    (tmp_path / "job.py").write_text(STAGES_OF_A_MESH.replace("OF", "2:"))
    job = ("--ranks", "4", "--", str(tmp_path / "job.py"))
    _, said = drafted(tmp_path / "draft.tspec", *job)
    found = layout_in(tmp_path / "draft.tspec")
    assert (said, found.mesh.axes) == ("", (("replicas", 2), ("pp", 2)))
    assert found.replicated == ("replicas",)
    assert stages_in(found) == [(0, 0, "0", "1"), (1, 0, "2", "2")]


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
def test_stages_that_count_from_0_are_said_once(tmp_path: Path) -> None:
    """Both stages have the modules `0` and `1`; one sentence says it of all their tensors."""
    text = STAGES_OF_A_MESH.replace("whole[OF]", "whole[:2]")
    (tmp_path / "job.py").write_text(text)
    job = ("--ranks", "4", "--", str(tmp_path / "job.py"))
    _, said = drafted(tmp_path / "draft.tspec", *job)
    assert said.count("under the same name on stage 1") == 1
    assert "note: `*.weight`, `*.bias`: on stage 0, and under the same name on stage 1" in said


@pytest.mark.gloo
@pytest.mark.slow
def test_megatron_tells_how_parameters_are_cut(tmp_path: Path) -> None:
    """The draft says of each parameter of the model what the shipped layout says."""
    found = drafted_of_megatron("tp=2", tmp_path)
    said = differences(found, of_the_job("gpt", Layout.parse("tp=2")))
    assert [each for each in said if each.kind == "param" and each.old is not None] == []


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
def test_megatron_tells_which_stage_holds_what(tmp_path: Path) -> None:
    """Stages cut no parameter. The last stage has a copy of the tied embedding as its output layer."""
    found = drafted_of_megatron("pp=2", tmp_path)
    cuts = [dimension.splits for each in found.placements for dimension in each.shape.dimensions]
    assert set(cuts) == {()}
    assert [[str(module.prefix) for module in stage.modules] for stage in found.stages] == [
        ["embedding", "decoder.layers."],
        ["decoder.layers.", "decoder.final_layernorm", "output_layer"],
    ]
    assert found.ties == (Tie("embedding.word_embeddings.weight", "output_layer.weight"),)
    ends = re.search(
        r"^  tied \"embedding.word.*?(?=```)", (ROOT / "docs/layouts.md").read_text(), re.M | re.S
    )
    assert ends is not None and ends[0] in (tmp_path / "draft.tspec").read_text()


def test_chunks_of_interleaved_stages_are_said(tmp_path: Path) -> None:
    """In the order in which the model passes them."""
    whole = ((0, 1, 2, 3),)
    held = [("words", 0, 0), *((f"layers.{at}", at % 2, at // 2) for at in range(4))]
    tensors = tuple(
        ShardIndices(f"{name}.weight", (4,), {stage: whole}, chunk=chunk)
        for name, stage, chunk in held
    )
    made = draft(Found((("tp", 1), ("pp", 2)), tensors), "two", "two")
    (tmp_path / "draft.tspec").write_text(made.text)
    layout = layout_in(tmp_path / "draft.tspec")
    assert [
        (each.number, each.chunk, [module.prefix for module in each.modules])
        for each in layout.stages
    ] == [
        (0, 0, ["words", "layers.0"]),
        (1, 0, ["layers.1"]),
        (0, 1, ["layers.2"]),
        (1, 1, ["layers.3"]),
    ]


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
def test_megatron_tells_which_chunk_of_a_stage_holds_what(tmp_path: Path) -> None:
    found = drafted_of_megatron("pp=2,virtual=2", tmp_path)
    layers = [
        (stage.number, stage.chunk, module.prefix)
        for stage in found.stages
        for module in stage.modules
        if module.prefix.startswith("decoder.layers.")
    ]
    assert layers == [(at % 2, at // 2, f"decoder.layers.{at}") for at in range(4)]


EXPERTS = "experts=4,noaux,untied"


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("", {"tp": 2}),
        ("", {"pp": 2}),
        ("untied", {"pp": 2}),
        (EXPERTS, {"dp": 2, "ep": 2}),
    ],
    ids=["tp", "pp", "pp, untied", "ep"],
)
def test_a_clean_megatron_job_is_one_device_by_its_draft(
    model: str, sizes: dict[str, int], tmp_path: Path
) -> None:
    """From generated weights, which each rank makes its shard of by the draft."""
    draft = tmp_path / "draft.tspec"
    job = ",".join((*(f"{axis}={size}" for axis, size in sizes.items()), model, "steps=1"))
    _, said = drafted(draft, "--ranks", "2", "--", str(ROOT / "tests/megatron/rank.py"), job)
    assert said == ""
    one = ", ".join(f"{axis}: 1" for axis in sizes)
    several = ", ".join(f"{axis}: {size}" for axis, size in sizes.items())
    with draft.open("a") as file:
        file.write(SAME.format(one=one, several=several))
    axes = ",".join(f"{axis}={{{axis}}}" for axis in sizes)
    job = f"{axes},{model},passes=2,steps=1"
    ended = done(
        *("-m", "tspec", "run", str(draft), "--equivalence", "same", "--"),
        *(str(ROOT / "tests/megatron/train.py"), job),
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    compared = re.search(r"same: (\d+) tensors compared, none differs", ended.stdout)
    assert compared is not None and int(compared[1]) > 80, ended.stdout


SAME = """
equivalence same {{
  layout draft
  reference {{ {one} }}
  candidate {{ {several} }}
  run 1 step from generated(seed: 7)
  compare param_grads, params, losses
  within 3 * noise(samples: 1)
}}
"""


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
def test_megatron_tells_how_experts_are_cut(tmp_path: Path) -> None:
    """All experts of a layer are one tensor, over axes of their own, as in the shipped layout."""
    job = f"tp=2,dp=2,ep=2,etp=2,sp,{EXPERTS},kv=2,swiglu,rms,rope"
    script = str(ROOT / "tests/megatron/rank.py")
    drafted(tmp_path / "draft.tspec", "--ranks", "4", "--", script, f"{job},steps=1")
    found = layout_in(tmp_path / "draft.tspec")
    assert found.mesh.regroups == (("experts", (("etp", 2), ("ep", 2), ("edp", 1), ("pp", 1))),)
    said = differences(found, of_the_job("moe", Layout.parse(job)))
    assert [each for each in said if each.kind == "param" and each.old is not None] == []


def test_what_is_left_out_of_all_layers_for_one_reason_is_one_line() -> None:
    left = [Unknown(f"layers.{at}.experts.{at}.weight", "why") for at in range(3)]
    norm = Unknown("layers.0.norm", "other")
    head = Unknown("head", "why")
    made = draft(Found((("tp", 2),), (*left, norm, head)), "two", "two")
    assert made.unknown == (
        Remark(("layers.*.experts.*.weight", "head"), "why", 4),
        Remark(("layers.0.norm",), "other"),
    )
    [said] = [line for line in made.text.splitlines() if "why" in line]
    assert said == "/// Not found: `layers.*.experts.*.weight`, `head`: why."


def drafted_of_megatron(job: str, folder: Path) -> LayoutDeclaration:
    """What is drafted of one step of a job."""
    script = str(ROOT / "tests/megatron/rank.py")
    drafted(folder / "draft.tspec", "--ranks", "2", "--", script, f"{job},steps=1")
    found = layout_in(folder / "draft.tspec")
    assert len(found.placements) == 16
    return found


@pytest.mark.parametrize(
    ("axes", "ranks", "why"),
    [
        ((("tp", 2), ("dp", 2), ("pp", 1)), (0, 2), "only some ranks of a stage hold it"),
        ((("tp", 2), ("dp", 2)), (0, 2), "not all ranks hold it"),
        ((("tp", 2), ("pp", 2)), (0, 1, 2), "only some ranks of a stage hold it"),
        ((("tp", 2), ("pp", 2)), (2, 3), ""),
        ((("tp", 2), ("pp", 2)), (0, 1, 2, 3), ""),
    ],
)
def test_what_some_ranks_of_a_stage_hold_is_no_replica(
    axes: tuple[tuple[str, int], ...], ranks: tuple[int, ...], why: str
) -> None:
    """As an expert that is held alone."""
    pieces = ShardIndices("experts.1.weight", (4,), dict.fromkeys(ranks, (tuple(range(4)),)))
    found = placement(pieces, axes)
    assert (isinstance(found, Unknown) and found.why.startswith(why)) == bool(why)
