"""The shipped layouts cut each parameter as megatron-core says that it does, in its sharded state dictionary."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from tests.families import EXHAUSTIVE
from tests.jobs import done
from tests.megatron.layouts import Layout
from tests.megatron.shipped import of_the_job
from tspec.layout.places import placement_of, tied_to
from tspec.layout.shards import shard, stage_on
from tspec.layout.sizes import sizes_of
from tspec.resolve.program.sharding import LayoutDeclaration

SAVED_AS = (
    ("self_attention.linear_qkv.layer_norm_", "input_layernorm."),
    ("mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm."),
    ("experts.experts.", "experts."),
)
"""Parts of names in a state dictionary, and what the modules are called."""

Held = dict[str, set[tuple[int, ...]]]
"""Names of parameters, and the indices in the full tensors."""


def as_megatron_says(folder: Path, rank: int, layout: LayoutDeclaration) -> Held:
    """What a rank's sharded state dictionary says, by the names that the layout has."""
    found: Held = {}
    for each in json.loads((folder / f"{rank}.json").read_text()):
        name = each["key"]
        for saved, own in SAVED_AS:
            name = name.replace(saved, own)
        layers = name.startswith("decoder.layers.")
        if layers:
            name = name.replace("layers.", f"layers.{each['offset'][0]}.", 1)
        if stage_on(layout, name, rank) is None:  # the copy of a tied tensor
            [name] = tied_to(layout, name)
        start = each["offset"][layers:]
        length = [1] * (each["prepended"] - layers) + each["local"]
        indices = product(*(range(s, s + n) for s, n in zip(start, length, strict=True)))
        found.setdefault(name, set()).update(indices)
    return found


@pytest.mark.gloo
@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("llama", "tp=2,pp=2,virtual=2,kv=2,swiglu,rms,rope,qknorm,untied"),
        *(
            pytest.param("gpt", job, marks=EXHAUSTIVE)
            for job in ("tp=2,pp=2,dp=2,qknorm", "tp=2,cp=2,dp=2,qknorm,untied")
        ),
        pytest.param(
            "moe",
            "tp=2,dp=2,ep=2,experts=4,kv=2,swiglu,rms,rope,qknorm,untied",
            marks=EXHAUSTIVE,
        ),
    ],
)
def test_a_layout_cuts_as_megatron_does(name: str, job: str, tmp_path: Path) -> None:
    asked = Layout.parse(job)
    ended = done("tests/megatron/sharded.py", job, str(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    layout = of_the_job(name, asked)
    sizes = sizes_of(layout)
    used = set()
    for rank in range(asked.world):
        for tensor, indices in as_megatron_says(tmp_path, rank, layout).items():
            place = placement_of(layout, "param", tensor, sizes.known)
            if place is None:
                assert tensor.endswith(".bias") and name == "llama", tensor
                continue
            piece = shard(layout, "param", tensor, rank, sizes)
            assert piece is not None, (rank, tensor)
            assert set(piece.indices()) == indices, (rank, tensor)
            used.add(place.pattern)
    # The jobs have no shared expert.
    places = {each.pattern for each in layout.placements if each.kind == "param"}
    assert {each for each in places - used if "shared_experts" not in each} == set()
