"""Sketches add up over shards and summands, their errors are as stated, and jobs are judged from them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from math import inf, prod, sqrt
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.equivalence.references import references_of
from tests.equivalence.trials import trial_of
from tests.layout.cut import AXES, layout_of, placements
from tspec.equivalence.check import compare, drill
from tspec.equivalence.compare import Comparer
from tspec.equivalence.cut import Cut, whole
from tspec.equivalence.cuts import cut_of
from tspec.equivalence.localize import localize_sketched
from tspec.equivalence.merge import RankShard, merge
from tspec.equivalence.observing.orders import Orders, Sketching
from tspec.equivalence.observing.recorder import TensorRecorder
from tspec.equivalence.observing.update_sizes import UpdateSizes
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.progress import Progress
from tspec.equivalence.recording import Sketched, TensorName
from tspec.equivalence.runs import ReferenceRecordings, run_candidate, run_reference
from tspec.equivalence.sides import Trial
from tspec.equivalence.sketch import (
    NUMBERS,
    Draws,
    length,
    margin,
    sketch,
    standard_error,
)
from tspec.equivalence.updates import spread, undetermined
from tspec.layout.ranks import coordinates
from tspec.layout.shards import shard
from tspec.layout.sizes import sizes_of
from tspec.resolve import load_text
from tspec.resolve.program.sharding import Placement
from tspec.resolve.program.trials import Combined, Noise, Number

HERE = Path(__file__).resolve().parent
WORLD = prod(size for _, size in AXES)
SHAPE = (40, 50)
WEIGHT = TensorName("param_grads", "fc.weight", 1)
LATER = TensorName("param_grads", "fc.weight", 2)
FLOATS = Sketched(SHAPE, "float32")
THREE = Combined("*", Number(3.0), Noise())


def of(tensor: Tensor, name: str = "fc.weight") -> Tensor:
    return sketch(name, whole(tuple(tensor.shape)), tensor, Draws())


# --- properties -----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(placements(), st.sampled_from([1, 64]))
def test_sketches_of_shards_and_summands_are_the_sketch_of_the_tensor(
    place: Placement, width: int
) -> None:
    """Also of padded ones, of replicas of which one counts, and of tensors that are their own sketch."""
    layout = layout_of(place)
    shards = [shard(layout, "param", "w", rank, sizes_of(layout)) for rank in range(WORLD)]
    full = torch.randn((*shards[0].full, width))
    spare = [name for name, _ in AXES if name not in place.cut_over]
    summed = spare[:1]
    count = prod(dict(AXES)[name] for name in summed)
    pieces = []
    for rank, each in enumerate(shards):
        one = cut_of(each)
        cut = Cut((*one.full, width), (*one.runs, ((0, width, 0, 1),)))
        positions = cut.positions()
        held = full.flatten()[positions.clamp(min=0)].masked_fill(positions < 0, inf)
        summand = tuple(coordinates(AXES, rank)[name] for name in summed)
        numbers = sketch("w", cut, held.double() / count, Draws())
        pieces.append(RankShard(rank, cut, numbers, summand, Sketched(cut.shape, "float32")))
    merged = merge(tuple(full.shape), pieces)
    assert (merged.faults, merged.spreads) == ((), ())
    assert merged.tensor is not None and merged.tensor.shape == (length(tuple(full.shape)),)
    assert torch.allclose(merged.tensor, of(full, "w"), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "one large element"])
def test_the_error_of_a_norm_is_as_stated(kind: str) -> None:
    """Over names, which are seeds: no bias, the stated error at most, and few beyond the margin."""
    tensor = torch.randn(SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    if kind == "heavy tails":
        tensor = tensor**5
    if kind == "one large element":
        tensor[3, 4] = 1e4
    number, norm = 600, float(tensor.norm())
    found = torch.stack([of(tensor, f"layer.{each}").norm() / norm for each in range(number)])
    stated = standard_error(SHAPE)
    assert stated == pytest.approx(sqrt(1 / (2 * NUMBERS)), rel=0.012)
    assert abs(float(found.square().mean()) - 1) <= 4 * 2 * stated / sqrt(number)
    assert float((found - 1).square().mean().sqrt()) <= 1.15 * stated
    assert int(((found - 1).abs() > margin(SHAPE)).sum()) == 0


def test_a_tensor_of_few_elements_is_its_own_sketch() -> None:
    tensor = torch.randn(16, 32)
    assert torch.equal(of(tensor), tensor.double().flatten())
    assert (standard_error((16, 32)), margin((16, 32))) == (0.0, 0.0)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.bfloat16, torch.int64, torch.bool])
def test_a_tensor_of_any_dtype_has_a_sketch(dtype: torch.dtype) -> None:
    tensor = torch.randn(SHAPE).to(dtype)
    assert torch.equal(of(tensor), of(tensor.double()))


def test_what_was_drawn_is_kept_while_there_is_room() -> None:
    tensor = torch.randn(SHAPE)
    draws, none = Draws(), Draws(room=0)
    cut, device = whole(SHAPE), tensor.device
    assert draws.draw("a", cut, device) is draws.draw("a", cut, device)
    assert none.draw("a", cut, device) is not none.draw("a", cut, device)
    assert torch.equal(sketch("a", cut, tensor, draws), sketch("a", cut, tensor, none))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-12, 1e3), st.integers(-30, 30))
def test_what_a_gradient_does_not_determine_is_between_once_and_twice(
    seed: int, off: float, power: int
) -> None:
    numbers = torch.Generator().manual_seed(seed)
    gradient, update = torch.randn(2, 300, generator=numbers, dtype=torch.float64)
    gradient = gradient**3 * 2.0**power
    gradient[:50] = 0.0
    may = off / sqrt(250)
    part = torch.where(may < 2 * gradient.abs(), may / gradient.abs(), 2.0)
    exact = float((update * part).norm())
    found = undetermined(spread(update, gradient), off)
    assert exact * (1 - 1e-9) <= found <= 2 * exact * (1 + 1e-9)


# --- verdicts and evidence ------------------------------------------------------------------------


def comparer(noise: float = 1e-6) -> tuple[Comparer, Tensor]:
    numbers = torch.Generator().manual_seed(3)
    reference, before, moved = torch.randn(3, *SHAPE, generator=numbers, dtype=torch.float64)
    sample = reference + noise * moved
    tensors = {WEIGHT: of(before), LATER: of(reference)}
    found = Comparer(
        *(tensors, [{WEIGHT: of(before), LATER: of(sample)}], THREE),
        {WEIGHT: FLOATS, LATER: FLOATS},
    )
    return found, reference


def test_an_update_of_a_parameter_in_another_memory_order_is_measured(tmp_path: Path) -> None:
    """As that of a convolution whose channels are last."""
    orders = Orders(1, ("params",), sketching=Sketching())
    recorder = TensorRecorder(orders, Progress(tmp_path, 0))
    sizes = UpdateSizes(orders, recorder)
    weight = torch.ones(4, 3, 3, 3).to(memory_format=torch.channels_last)
    sizes.begins("conv.weight", weight)
    sizes.is_made_from("conv.weight", weight)
    sizes.is_made("conv.weight", 1, 3 * weight)
    [made] = recorder.tensors.values()
    assert float(made[2:].sum()) == 4 * weight.numel()


def test_the_error_of_estimates_is_added_to_what_is_tolerated() -> None:
    compares, reference = comparer()
    moved = torch.randn(SHAPE, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    near = compares.compared(LATER, of(reference + 3e-6 * moved))
    far = compares.compared(LATER, of(reference + 5e-6 * moved))
    assert (near.differs, far.differs) == (False, True)
    assert near.standard_error == standard_error(SHAPE)
    assert near.tolerated == pytest.approx(3e-6 * (1 + margin(SHAPE)), rel=0.15)


@pytest.mark.parametrize(
    ("change", "suggests"),
    [
        (lambda of, before: 0.5 * of, "wrong scale"),
        (lambda of, before: 0 * of, "zero"),
        (lambda of, before: before, "stale"),
        (lambda of, before: of / 0, "not finite"),
        (lambda of, before: of.flatten().flip(0).view(SHAPE), "unknown"),
    ],
)
def test_evidence_is_what_sketches_tell(
    change: Callable[[Tensor, Tensor], Tensor], suggests: str
) -> None:
    """The same numbers in another order have another sketch, and nothing is said of them."""
    compares, reference = comparer()
    numbers = torch.Generator().manual_seed(3)
    before = torch.randn(3, *SHAPE, generator=numbers, dtype=torch.float64)[1]
    found = compares.compared(LATER, of(change(reference, before)))
    assert found.differs and found.evidence.suggests == suggests


def test_replicas_that_are_summands_lack_a_reduction() -> None:
    compares, reference = comparer()
    part = torch.randn(SHAPE, dtype=torch.float64)
    held = (part, reference - part)
    pieces = [RankShard(rank, whole(SHAPE), of(each), (), FLOATS) for rank, each in enumerate(held)]
    [fault] = compares.faults(LATER, merge(SHAPE, pieces))
    assert fault.fault.kind == "replicas"
    assert fault.evidence.suggests == "missing reduction"


def test_shapes_holes_and_doubled_elements_are_told_of_sketches() -> None:
    top = Cut(SHAPE, (((0, 20, 0, 1),), ((0, 50, 0, 1),)))
    half = RankShard(
        0, top, sketch("w", top, torch.ones(20, 50), Draws()), (), Sketched((20, 50), "float32")
    )
    small = replace(half, rank=1, tensor=torch.empty(0), sketched=Sketched((20, 49), "float32"))
    kinds = [
        [fault.kind for fault in merge(SHAPE, pieces).faults]
        for pieces in ([half], [half, small], [half, replace(half, rank=1, tensor=None)])
    ]
    assert kinds == [["omission"], ["shape"], ["missing"]]


# --- jobs -----------------------------------------------------------------------------------------

SIZES = {"heads": 4, "head": 16, "hidden": 64, "ffn": 256}


def trial(dtype: str, fault: str = "") -> Trial:
    """The transformer of `test_transformer.py`, large enough for tensors that are not their own sketches."""
    text = (HERE / "transformer.tspec").read_text()
    text = text.replace("localize by rewriting inputs", "store: sketch")
    for name, size in SIZES.items():
        text = re.sub(rf"^  {name}: \d+$", f"  {name}: {size}", text, flags=re.M)
    program = load_text(text).program
    assert program is not None
    [declaration] = program.equivalences
    sizes = ("--hidden", "64", "--heads", "4")
    script = str(HERE / "transformer.py")
    return trial_of(declaration, (script, "--dtype", dtype, "--fault", fault, *sizes))


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ReferenceRecordings]:
    return references_of(trial, tmp_path_factory)


def judged(reference: ReferenceRecordings, asked: Trial, folder: Path) -> Outcome:
    return compare(asked, reference, run_candidate(asked, reference.recording, folder))


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ("float32", "bfloat16"))
def test_the_clean_job_is_silent(
    dtype: str, references: Callable[[str], ReferenceRecordings], tmp_path: Path
) -> None:
    found = judged(references(dtype), trial(dtype), tmp_path)
    assert (found.wrong, found.faults, found.unplaced) == ((), (), ())
    assert len(found.comparisons) == 99
    assert sum(each.standard_error > 0 for each in found.comparisons) > 50


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("dtype", "fault", "name"),
    [
        pytest.param("float32", "scale", "blocks.1.fc2", marks=pytest.mark.exhaustive),
        pytest.param("float32", "shard", "blocks.1.attention.proj", marks=pytest.mark.exhaustive),
        ("bfloat16", "all_reduce", "blocks.1.fc2"),
        pytest.param("bfloat16", "shard", "blocks.1.attention.proj", marks=pytest.mark.exhaustive),
    ],
)
def test_the_first_wrong_tensor_is_that_of_the_fault(
    dtype: str,
    fault: str,
    name: str,
    references: Callable[[str], ReferenceRecordings],
    tmp_path: Path,
) -> None:
    found = judged(references(dtype), trial(dtype, fault), tmp_path)
    assert found.first is not None and found.first.standard_error > 0
    assert (found.first.name.kind, found.first.name.name) == ("outputs", name)
    disagree = {each.name.name for each in found.faults if each.fault.kind == "replicas"}
    assert (name in disagree) == (fault == "all_reduce")
    files = sorted((tmp_path / "candidate").glob("*.elements"))
    assert len(files) == 2 and all(each.stat().st_size < 99 * 8 * NUMBERS for each in files)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_the_first_wrong_tensors_are_judged_in_full(
    references: Callable[[str], ReferenceRecordings], tmp_path: Path
) -> None:
    asked = trial("float32", "scale")
    reference = references("float32")
    estimated = judged(reference, asked, tmp_path)
    found = drill(asked, reference.recording, estimated, tmp_path)
    assert estimated.first is not None and found.first is not None
    assert found.first.name == estimated.first.name == found.drilled[0]
    assert len(found.drilled) == 8 and found.first.standard_error == 0
    exact, error = found.first.error, estimated.first.error
    assert abs(error - exact) <= 4 * standard_error((4, 4, 64)) * exact
    ones = {each.name: each for each in found.comparisons}
    assert all(ones[each].standard_error == 0 for each in found.drilled if each in ones)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_the_module_that_is_wrong_by_itself_is_named_from_sketches(tmp_path: Path) -> None:
    """Only what was wrong is kept in full, and rewritten."""
    asked = replace(trial("float32", "scale"), localize=True, samples=1)
    reference = run_reference(asked, tmp_path)
    candidate = run_candidate(asked, reference.recording, tmp_path)
    found = localize_sketched(asked, reference, candidate, tmp_path)
    [suspect] = found.suspects
    assert (suspect.module, suspect.evidence.suggests) == ("blocks.1.fc2", "wrong scale")
    full = [each for each in found.comparisons if each.standard_error == 0]
    assert TensorName("outputs", "blocks.1.fc2", 1, 1) in [each.name for each in full]
    right = TensorName("outputs", "blocks.0.fc1", 1, 1)
    [kept] = (each for each in found.comparisons if each.name == right)
    assert kept.standard_error > 0 and not kept.differs
