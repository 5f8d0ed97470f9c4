"""megatron-core in a dry run: its GPT is as the shipped layout says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.megatron.layouts import Layout
from tests.megatron.shipped import of_the_job
from tspec.layout.sizes import sizes_of
from tspec.preflight.check import problems
from tspec.preflight.launch import dry_runs
from tspec.preflight.tensors import judged
from tspec.resolve.program.sharding import Placement, Shape, Split

SCRIPT = str(Path(__file__).parents[1] / "megatron/rank.py")
WITH_FAULT = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.megatron.cpu import run_on_cpu
from tests.megatron.layouts import Layout
run_on_cpu()
import torch.distributed as dist
from tests.megatron.bugs.experts_not_reduced import put_in
from tests.megatron.job import train
put_in()
dist.init_process_group("gloo")
train(Layout.parse(sys.argv[1]))
"""
"""A rank of a job that leaves the gradients of experts as they are."""


def wrong(place: Placement) -> Placement:
    """The matrix of the second linear layer cut in its other dimension."""
    if place.pattern != "decoder.layers.*.mlp.linear_fc2.weight":
        return place
    assert isinstance(place.shape, Shape)
    rows, columns = place.shape.dimensions
    cut = (replace(rows, splits=(Split("tp"),)), replace(columns, splits=()))
    return replace(place, shape=Shape(cut))


@pytest.mark.gloo
@pytest.mark.slow
def test_gpt_is_as_the_shipped_layout_says() -> None:
    job = "tp=2,dp=2,steps=2"
    layout = of_the_job("gpt", Layout.parse(job))
    (facts,) = dry_runs([SCRIPT, job], (3,), 4)
    assert len(facts.parameters) == 52
    assert problems(layout, sizes_of(layout), [facts]) == ()
    assert len(list(judged(layout, sizes_of(layout), facts))) == 124
    unbiased = [each for each in facts.parameters if not each.name.endswith("linear_fc2.bias")]
    [lost] = problems(layout, sizes_of(layout), [replace(facts, parameters=tuple(unbiased))])
    assert lost.name == "decoder.layers.*.mlp.linear_fc2.bias"
    assert lost.what == "the layout has it, and the model has no parameter of that name"
    other = replace(layout, placements=tuple(map(wrong, layout.placements)))
    found = problems(other, sizes_of(other), [facts])
    assert {each.name for each in found} == {
        f"decoder.layers.{layer}.mlp.linear_fc2.weight" for layer in range(4)
    }
    sums = tuple(
        each for each in facts.reductions if each.parameter != "decoder.final_layernorm.bias"
    )
    inside = tuple(each for each in facts.collectives if each.where not in ("", "backward"))
    less = replace(facts, reductions=sums, collectives=inside)
    [missing] = problems(layout, sizes_of(layout), [less])
    assert (missing.name, "over `dp`" in missing.what) == ("decoder.final_layernorm.bias", True)


@pytest.mark.gloo
@pytest.mark.slow
def test_gradients_of_experts_are_added_up_over_their_own_groups(tmp_path: Path) -> None:
    job = "dp=4,ep=2,noaux,experts=4,kv=2,swiglu,rms,rope,untied,steps=2"
    layout = of_the_job("moe", Layout.parse(job))
    sizes = sizes_of(layout)
    (facts,) = dry_runs([SCRIPT, job], (3,), 4)
    experts = {each.name for each in facts.parameters if each.expert}
    assert len(experts) == 16 and problems(layout, sizes, [facts]) == ()

    script = tmp_path / "script.py"
    script.write_text(WITH_FAULT)
    missing = problems(layout, sizes, dry_runs([str(script), job], (3,), 4))
    assert {each.name for each in missing} == experts
    said = "its gradient is not added up over `edp`, which cuts the data"
    assert {each.what for each in missing} == {said}

    everywhere = tuple(replace(each, ranks=(0, 1, 2, 3)) for each in facts.reductions)
    mixed = problems(layout, sizes, [replace(facts, reductions=everywhere)])
    assert {each.name for each in mixed} == experts
    said = "its gradient is added up over `ep`, which cuts the parameter"
    assert {each.what for each in mixed} == {said}

    lost = max(experts)
    fewer = tuple(each for each in facts.parameters if each.name != lost)
    [less] = problems(layout, sizes, [replace(facts, parameters=fewer)])
    assert less.name == "decoder.layers.3.mlp.experts.linear_fc2.weight"
    assert less.what == "it has shape [1, 32, 64], and [2, 32, 64] of [4, 32, 64] in the layout"
