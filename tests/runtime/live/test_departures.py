"""What a loop in a function leaves behind is read at the end of the run, by hooks and by both checkers of recordings."""

import copy
import gc
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from tests.runtime.test_live_agreement import (
    Key,
    counted,
    differences,
    of_recording,
    program,
    watched,
)
from tspec.check import columnar
from tspec.record.watch import watch_spec
from tspec.resolve import load_text
from tspec.runtime.live import LiveJob

RULES = """
invariant held { for p in parameters each run expect present(p.group) }
invariant follows {
  for m in models
  each run
  when count(m.parameters.group) == 0
  expect digest(m.parameters.data) != first(digest(m.parameters.data))
}
invariant stepped { for s in schedulers each run expect s.last_epoch == 3 }
invariant rates { for o in optimizers each run expect max(o.param_groups.lr) < 1 }
"""


def train(steps: int = 3) -> None:
    """A loop with a copy that never follows; all that it made goes when it returns."""
    model = nn.Linear(3, 2)
    target = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(torch.ones(4, 3)) - target(torch.zeros(4, 3)).detach()).square().mean().backward()
        optimizer.step()
        schedule.step()


def test_all_executors_read_what_a_function_left_behind(tmp_path: Path) -> None:
    def run() -> None:
        train()
        gc.collect()

    checker, decided = watched(tmp_path, RULES, run)
    assert checker.faults == []
    expected = of_recording(tmp_path, RULES)
    assert differences(expected, decided) == {}
    found = columnar.check(program(RULES).rules, tmp_path / "trace").decided
    keys: dict[Key, str] = {
        (d.instance.rule, d.instance.ranks, d.instance.at, d.instance.subjects): d.verdict
        for d in found
    }
    assert keys == {key: verdict for key, (verdict, *_) in expected.items()}
    counts = counted(expected)
    assert counts["t.held"] == {"holds": 2, "violated": 2}
    assert counts["t.follows"] == {"idle": 1, "violated": 1}
    assert counts["t.stepped"] == {"holds": 1}
    assert counts["t.rates"] == {"holds": 1}


ORDERS = """
invariant anew {
  for l in loaders
  each epoch
  when l.shuffled and l.trained_on and present(l.length) and l.length == 4
  expect digest(calls(fetch, loader: l)[0].tensors)
    != previous(digest(calls(fetch, loader: l)[0].tensors))
}
"""


def test_a_loader_that_goes_with_its_function_is_known_at_the_end(tmp_path: Path) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(24.0).reshape(8, 3))

    def run() -> None:
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        sampler = torch.utils.data.DistributedSampler(data, 1, 0)  # of which nobody sets the epoch
        loader = torch.utils.data.DataLoader(data, 2, sampler=sampler)
        for _ in range(2):
            for (rows,) in loader:
                optimizer.zero_grad()
                model(rows).square().mean().backward()
                optimizer.step()

    checker, decided = watched(tmp_path, ORDERS, run)
    assert checker.faults == []
    expected = of_recording(tmp_path, ORDERS)
    assert differences(expected, decided) == {}
    assert counted(expected)["t.anew"] == {"unknown": 1, "violated": 1}


def followed() -> LiveJob:
    loaded = load_text("edition 2026\n\nmodule t\n\nuse std.torch\n")
    assert loaded.program is not None
    return LiveJob(watch_spec(loaded.program.vocabulary), [])


def optimizers(job: LiveJob) -> list[str]:
    """Those that exist. The collector finds the ones in cycles, as a schedule makes them."""
    gc.collect()
    return list(job.state.subjects("optimizer"))


def test_a_module_that_is_built_later_makes_room() -> None:
    with followed() as job:
        train()
        assert len(optimizers(job)) == 1
        nn.ReLU()
        assert optimizers(job) == []


def test_the_next_step_makes_room() -> None:
    model = nn.Linear(3, 2)
    with followed() as job:
        train()
        assert len(optimizers(job)) == 1
        model(torch.ones(1, 3)).sum().backward()
        assert optimizers(job) == []


def test_the_end_takes_the_finalizers_away() -> None:
    with followed():
        train()
        assert all(hasattr(each, "__del__") for each in (torch.optim.SGD, LRScheduler))
    assert not any(hasattr(each, "__del__") for each in (torch.optim.SGD, LRScheduler))


def test_optimizers_of_each_step_do_not_pile_up() -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with followed() as job:
        for _ in range(6):
            optimizer.zero_grad()
            fast = copy.deepcopy(model)
            inner = torch.optim.SGD(fast.parameters(), lr=0.1)
            fast(torch.ones(4, 3)).sum().backward()
            inner.step()
            model(torch.ones(4, 3)).sum().backward()
            optimizer.step()
            del fast, inner
            assert len(optimizers(job)) <= 2


def test_a_finalizer_of_the_script_stays(capfd: pytest.CaptureFixture[str]) -> None:
    class Said(torch.optim.SGD):
        def __del__(self) -> None:
            print("freed")

    model = nn.Linear(3, 2)
    with followed() as job:
        optimizer = Said(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
        del optimizer
        assert optimizers(job) == []
        assert capfd.readouterr().out == "freed\n"
