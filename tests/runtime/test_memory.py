"""What rules keep of a job: it does not grow with the steps, but for what a window still needs."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.runtime.training import module
from tspec.record.destination import Destination
from tspec.record.start import recorder_of
from tspec.record.watch import watch_spec
from tspec.resolve import load
from tspec.runtime.live import LiveJob
from tspec.targets.compile import compile_program
from tspec.targets.load import module_of

ESSENTIALS = Path(__file__).parents[2] / "specs" / "essentials"


def essentials() -> Any:
    loaded = load([ESSENTIALS])
    assert loaded.program is not None
    return loaded.program


def train(epochs: int, batches: int, after: Callable[[int], None]) -> None:
    """Two layers, a loader and a loss; `after` is called after each step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.utils.data.TensorDataset(torch.randn(batches, 2), torch.randint(0, 2, (batches,)))
    loader = torch.utils.data.DataLoader(data, batch_size=1, shuffle=True)
    step = 0
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            step += 1
            after(step)


OWN = (
    tracemalloc.Filter(True, "*/tspec/*"),
    tracemalloc.Filter(True, "<tspec_hooks_*"),
    # The interpreter keeps freed tuples of `match` for later, up to some hundreds of kilobytes.
    tracemalloc.Filter(False, "*/tspec/runtime/live/steps.py"),
    tracemalloc.Filter(False, "*/tspec/runtime/live/entities/others.py"),
)


def bytes_at(steps: tuple[int, ...], run: Callable[[Callable[[int], None]], None]) -> list[int]:
    """The memory of what tspec made and keeps after some steps."""
    found = []

    def look(step: int) -> None:
        if step == 1:
            tracemalloc.start(1)
        if step in steps:
            gc.collect()
            shot = tracemalloc.take_snapshot().filter_traces(OWN)
            found.append(sum(trace.size for trace in shot.traces))

    try:
        run(look)
    finally:
        tracemalloc.stop()
    return found


def checked(epochs: int, batches: int) -> Callable[[Callable[[int], None]], None]:
    hooks = module_of(compile_program(essentials()))

    def run(look: Callable[[int], None]) -> None:
        with hooks.install():
            train(epochs, batches, look)

    return run


BATCH = 100
"""Bytes of a batch within its epoch: `docs/design/live.md` says what they are."""
STEP = 100
"""Bytes of a step that are the interpreter's: the tuples that it keeps are counted where they were made first.

Python has the integers up to 256 once: each counter takes 32 bytes when it passes that. So what is kept is measured
after step 256.
"""


@pytest.mark.slow
def test_within_an_epoch_a_batch_is_kept_and_no_more() -> None:
    # Windows over a number of steps grow until they hold that many.
    early, late = bytes_at((350, 650), checked(1, 655))
    assert (late - early) / 300 < BATCH


@pytest.mark.slow
def test_epochs_leave_nothing_behind() -> None:
    early, late = bytes_at((280, 480), checked(24, 20))
    assert (late - early) / 200 < STEP


@pytest.mark.slow
@pytest.mark.exhaustive
def test_two_thousand_steps_leave_nothing_behind() -> None:
    early, late = bytes_at((500, 2_500), checked(6, 500))
    assert (late - early) / 2_000 < STEP / 5


@pytest.mark.slow
@pytest.mark.exhaustive
def test_ten_thousand_steps_leave_nothing_behind() -> None:
    early, late = bytes_at((2_000, 12_000), checked(25, 500))
    assert (late - early) / 10_000 < STEP / 10


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Callable[[Callable[[int], None]], None]]:
    spec = watch_spec(essentials().vocabulary)
    recorder = recorder_of(Destination(tmp_path / "trace"), spec, "test")

    def run(look: Callable[[int], None]) -> None:
        with LiveJob(spec, [recorder]):
            train(24, 20, look)

    yield run
    recorder.close()


@pytest.mark.slow
def test_a_recorder_keeps_nothing_of_steps_that_are_written(
    recording: Callable[[Callable[[int], None]], None],
) -> None:
    early, late = bytes_at((280, 480), recording)
    assert (late - early) / 200 < STEP


def kept(*rules: str, steps: int) -> tuple[dict[str, int], dict[str, int]]:
    """How many subjects of each kind and calls of each event are kept after a run of one epoch, before it ends."""
    with module(*rules).install() as checker:
        train(1, steps, lambda step: None)
        assert checker.faults == []
        assert checker.tracker.instants.samples is not None
        births = {kind: len(born) for kind, born in checker.tracker.instants.samples.births.items()}
        calls = {
            event: len(of.calls) + len(of.settled)
            for event, of in checker.tracker.log._events.items()
        }
    return births, calls


EPOCH = "for l in loaders each epoch expect count(calls(fetch, loader: l)) > 1"


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        ("for b in batches each step expect present(b.tensors)", 2),
        ("for b in batches each microbatch expect present(b.tensors)", 2),
        ("for b in batches each epoch expect present(b.tensors)", 40),
    ],
)
def test_batches_are_kept_for_the_windows_that_hold_them(rule: str, most: int) -> None:
    births, _ = kept(rule, EPOCH, steps=40)
    assert most // 2 <= births["batch"] <= most


def test_of_the_calls_of_an_epoch_those_are_kept_that_it_counts() -> None:
    rule = "each step expect count(calls(backward)) == 1"
    _, log = kept(rule, EPOCH, steps=40)
    assert log["fetch"] >= 39
    assert log["backward"] <= 2


def tensors_of(size: int) -> int:
    """The number of tensors of a size that exist, views of one memory counted once."""
    kinds = (torch.Tensor, nn.Parameter)
    held = (each for each in gc.get_objects() if type(each) in kinds)
    return len({each.data_ptr() for each in held if each.numel() == size})


def test_weights_are_not_copied_where_no_average_follows_them() -> None:
    # A copy of a large model would not fit beside it.
    model = nn.Linear(1_000, 1_000)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, found = torch.randn(4, 1_000), set()
    with module_of(compile_program(essentials())).install():
        for _ in range(31):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            found.add(tensors_of(model.weight.numel()))
    assert found == {2}  # the weight and its gradient
