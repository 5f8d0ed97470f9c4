"""megatron-core trains in each layout what it trains on one device: the harness stands on real parallel jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.jobs import done
from tests.megatron.jobs import TRAIN
from tests.megatron.layouts import Layout

FLOAT32 = 2e-5
BFLOAT16 = 3e-2
"""Relative differences to one device in float32 after ten steps of Adam: ten times what was seen."""

Losses = list[dict[str, float]]

LAYOUTS = (
    "tp=2,sp",
    "pp=2",
    "bf16,recompute",
    "tp=2,sp,swiglu,rms,rope,kv=2,untied",
    "tp=2,sp,experts=4,etp=2",
    "pp=2,first=1",
    "pp=2,virtual=2",
    "pp=2,bf16,recompute,warmup=2",
    "dp=2,overlap",
    "dp=2,zero",
    "dp=2,zero,bf16",
    "dp=2,experts=4,ep=2",
    "cp=2",
    "cp=2,swiglu,rms,rope,kv=2,untied",
    "cp=2,zero,bf16",
    "tp=2,cp=2,sp,rope",
    "cp=2,pp=2,recompute,overlap",
    "cp=2,dp=2,tokens",
    "cp=2,dp=2,zero,overlap",
    "cp=4,rope",
    "cp=2,dp=2,experts=4,ep=2,noaux",
    "tp=2,cp=2,pp=2,sp,zero,bf16",
    "tp=2,pp=2,sp,bf16",
    "tp=2,dp=2,sp,zero,overlap,tokens",
    "pp=2,dp=2,virtual=2,zero",
    "tp=2,pp=2,dp=2,sp,zero,experts=4,ep=2",
)


def trained(report: Path, layout: str, *options: str, launcher: tuple[str, ...] = ()) -> Losses:
    """Run the job of a layout to its end; the loss and gradient norm of each step."""
    ended = done(*launcher, TRAIN, layout, "--report", str(report), *options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found: Losses = json.loads(report.read_text())
    return found


@pytest.fixture(scope="module")
def on_one_device(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Layout], Losses]:
    """What the model of a layout comes to on one device; each is trained once."""

    @cache
    def reference(layout: Layout) -> Losses:
        return trained(tmp_path_factory.mktemp("one") / "report.json", str(layout))

    return lambda layout: reference(layout.one_device)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_trains_what_one_device_does(
    layout: str, on_one_device: Callable[[Layout], Losses], tmp_path: Path
) -> None:
    asked = Layout.parse(layout)
    expected = on_one_device(asked)
    found = trained(tmp_path / "report.json", layout)
    tolerance = BFLOAT16 if asked.bf16 else FLOAT32
    assert len(found) == asked.steps
    assert expected[-1]["loss"] < 0.95 * expected[0]["loss"]
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=tolerance)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("options", "launcher"),
    [
        (("--start", "spawn"), ()),
        ((), ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")),
    ],
    ids=["spawn", "torchrun"],
)
def test_ranks_start_in_every_way(
    options: tuple[str, ...],
    launcher: tuple[str, ...],
    on_one_device: Callable[[Layout], Losses],
    tmp_path: Path,
) -> None:
    found = trained(tmp_path / "report.json", "tp=2", *options, launcher=launcher)
    expected = on_one_device(Layout())
    assert [one["loss"] for one in found] == pytest.approx([one["loss"] for one in expected])


def test_a_layout_is_read_as_it_is_written() -> None:
    layout = Layout(tp=2, pp=2, sp=True)
    assert str(layout) == "tp=2,pp=2,sp" and Layout.parse(str(layout)) == layout
    assert (layout.world, layout.microbatches) == (4, 4)
    assert Layout.parse("tp=2,pp=2,sp=true") == layout
    no_part = "is no part of a layout"
    for wrong, why in (("tq=2", no_part), ("sp=1", no_part), ("tp", "has no number")):
        with pytest.raises(ValueError, match=f"'{wrong}' {why}"):
            Layout.parse(wrong)
