"""A run that goes on without its optimizer's state is told from one that restored it, and from one that took over weights only."""

import io
import random
from pathlib import Path

import pytest
import torch
from torch import nn

from tspec.runtime.live.checkpoints.resumed import LoadedCheckpoints


def trained(updates: int, kind: type[torch.optim.Optimizer] = torch.optim.Adam) -> dict:
    """The state of an optimizer after so many updates."""
    weight = nn.Parameter(torch.zeros(3))
    optimizer = kind([weight], lr=1e-3)
    for _ in range(updates):
        weight.grad = torch.ones(3)
        optimizer.step()
    return optimizer.state_dict()


def lost(loaded: object, saved: dict) -> int | None:
    known = LoadedCheckpoints()
    known.loaded(loaded)
    return known.lost_updates(saved)


@pytest.mark.parametrize(
    ("counter", "before", "after"),
    [("step", 20, 25), ("epoch", 4, 5), ("epoch", 3, 4), ("iters", 20, 40)],
)
def test_what_goes_on_without_the_optimizer_is_told(counter: str, before: int, after: int) -> None:
    """Twenty updates lie before: in steps, or in four epochs of five, also if epochs are counted from 0."""
    made = after - before if counter != "epoch" else 5
    saved = {"model": {}, "opt": trained(made), counter: after}
    assert lost({"model": {}, "opt": trained(20), counter: before}, saved) == 20
    assert lost({"opt": trained(20), counter: before}, saved | {"opt": trained(20 + made)}) == 0


def test_what_begins_anew_is_not() -> None:
    loaded = {"opt": trained(20), "epoch": 4}
    assert lost(loaded, {"opt": trained(5), "epoch": 1}) is None
    assert lost(loaded, {"opt": trained(15), "epoch": 3}) is None
    assert lost(loaded, {"opt": trained(20), "epoch": 4}) is None
    # fine-tuned for longer than it was trained before, and saved at the end alone
    assert lost(loaded, {"opt": trained(40), "epoch": 8}) == 0
    assert lost(loaded, {"opt": trained(12), "epoch": 6}) is None


def test_what_counts_no_updates_says_nothing() -> None:
    sgd = {"opt": trained(20, torch.optim.SGD), "step": 20}
    assert lost(sgd, {"opt": trained(5, torch.optim.SGD), "step": 25}) is None
    assert lost({"opt": trained(20), "lr": 0.1, "best": True}, {"opt": trained(5)}) is None
    assert lost({"opt": trained(20), "step": 20}, {"step": 25}) is None
    assert LoadedCheckpoints().lost_updates({"opt": trained(5), "step": 25}) is None
    assert lost([trained(5)], {"opt": trained(5), "step": 25}) is None


def test_one_of_several_optimizers_begins_anew() -> None:
    """No counter is in the file: that one optimizer goes on tells of the others, in a list or by name."""
    loaded = {"model": {}, "optimizers": [trained(20), trained(40)]}
    assert lost(loaded, {"optimizers": [trained(25), trained(10)]}) == 40
    assert lost(loaded, {"optimizers": [trained(25), trained(50)]}) == 0
    assert lost({"g": trained(20), "d": trained(20)}, {"g": trained(5), "d": trained(25)}) == 20
    # weights alone were taken over, or one stage is over
    assert lost(loaded, {"optimizers": [trained(5), trained(10)]}) is None
    assert lost(loaded, {"optimizers": [trained(40), trained(40)]}) == 0
    # numbers in a list count nothing
    assert (
        lost({"opt": trained(20), "sizes": [4, 20]}, {"opt": trained(5), "sizes": [9, 25]}) is None
    )


def restarted(loaded: object, saved: dict) -> list[str] | None:
    known = LoadedCheckpoints()
    known.loaded(loaded)
    return known.restarted(saved)


def counted(made: int, **counters: object) -> dict:
    """What a run saves that has made so many updates in all."""
    return {"opt": trained(made), **counters}


def test_counters_that_begin_anew_are_named() -> None:
    before = counted(20, sched={"last_epoch": 20}, ema={"n_averaged": torch.tensor(20)}, epoch=1)
    on = {"sched": {"last_epoch": 30}, "ema": {"n_averaged": torch.tensor(30)}, "epoch": 2}
    assert restarted(before, counted(30, **on)) == []
    assert restarted(before, counted(30, **on | {"sched": {"last_epoch": 10}})) == [
        "sched.last_epoch"
    ]
    assert restarted(before, counted(30, **on | {"ema": {"n_averaged": torch.tensor(10)}})) == [
        "ema.n_averaged"
    ]
    assert restarted(before, counted(30, **on | {"epoch": 0})) == ["epoch"]


def test_counters_that_are_told_to_begin_anew_are_not() -> None:
    before = counted(120, step=120, epoch=0, best_epoch=2, seed=3)
    # `step` counts within an epoch, of which a new one has begun
    assert restarted(before, counted(200, step=75, epoch=1, best_epoch=2, seed=3)) == []
    # nothing goes on: weights alone were taken over
    assert restarted(before, counted(80, step=80, epoch=0)) is None
    assert restarted(counted(20, sched={"last_epoch": 20}), counted(20, sched={})) is None
    assert LoadedCheckpoints().restarted(counted(20, step=1)) is None
    # another number of steps than were made since
    assert restarted(counted(20, step=20), counted(30, step=3)) == []


def with_momentum() -> dict:
    """What SGD saves: a buffer, and no number of updates."""
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return optimizer.state_dict()


def test_the_schedule_of_an_optimizer_that_counts_no_updates() -> None:
    def saved(last: int, epoch: int) -> dict:
        return {"opt": with_momentum(), "sched": {"last_epoch": last}, "epoch": epoch}

    loaded, known = saved(44, 2), LoadedCheckpoints()
    known.loaded(loaded, "2.pt")
    assert known.restarted(saved(22, 3), "3.pt") is None  # weights alone were taken over
    known.given(loaded["opt"])
    assert known.restarted(saved(22, 3), "3.pt") == ["sched.last_epoch"]
    assert known.restarted(saved(44, 4), "4.pt") == ["sched.last_epoch"]
    assert known.restarted(saved(66, 3), "3.pt") == []
    assert known.restarted(saved(22, 1), "1.pt") is None  # no counter goes on
    assert known.restarted(saved(66, 1), "1.pt") == ["epoch"]
    assert known.restarted(saved(88, 1), "1.pt") == []  # another number of epochs


def test_samplers_that_are_told_epochs_of_this_run_alone() -> None:
    known = LoadedCheckpoints()
    known.loaded(counted(20, epoch=1))
    assert known.restarted(counted(40, epoch=3), None, [1]) == ["sampler.epoch"]
    assert known.restarted(counted(40, epoch=3), None, [2]) == []  # counted from 0
    assert known.restarted(counted(40, epoch=3), None, [3, 4]) == []
    assert known.restarted(counted(40, epoch=3), None, [0]) == []  # is told nothing
    assert known.restarted(counted(40, epoch=3), None, [1003]) == []
    assert known.restarted(counted(40), None, [1]) == []
    assert known.restarted(counted(20, epoch=3), None, [1]) is None  # updates begin anew


def test_a_state_that_is_read_from_memory_is_no_checkpoint() -> None:
    """`ZeroRedundancyOptimizer` has ranks send one another their states as files in memory."""
    known = LoadedCheckpoints()
    known.loaded(counted(20, sched={"last_epoch": 20}), "last.pt")
    known.loaded(trained(30), io.BytesIO())
    assert known.restarted(counted(30, sched={"last_epoch": 10})) == ["sched.last_epoch"]
    assert known.lost_updates(counted(10, sched={"last_epoch": 30})) == 20


def test_a_schedule_in_a_file_of_its_own() -> None:
    known = LoadedCheckpoints()
    known.loaded({"last_epoch": 20}, "a/schedule.pt")
    known.loaded(trained(20), "a/optimizer.pt")
    assert (
        known.restarted({"last_epoch": 10}, "b/schedule.pt") is None
    )  # no optimizer was saved yet
    assert known.restarted(trained(30), "b/optimizer.pt") == []
    assert known.restarted({"last_epoch": 10}, "b/schedule.pt") == ["last_epoch"]
    assert known.restarted({"last_epoch": 30}, "b/schedule.pt") == []
    assert known.restarted({"last_epoch": 10}, "b/another.pt") is None


def scaler(scale: float) -> torch.amp.GradScaler:
    return torch.amp.GradScaler("cpu", init_scale=scale)


@pytest.mark.parametrize(("begins", "anew"), [(8.0, []), (2.0, ["scaler.scale"])])
def test_the_scale_with_which_a_run_goes_on(begins: float, anew: list[str]) -> None:
    """By the time it is saved the scale may be that of before by chance."""
    known, used = LoadedCheckpoints(), scaler(begins)
    known.unscales(used)  # before anything was read
    known.loaded(counted(20, scaler=scaler(8.0).state_dict()))
    known.unscales(used)
    used.scale(torch.ones(1))
    used.update(8.0)
    known.unscales(used)
    assert known.restarted(counted(30, scaler=used.state_dict())) == anew


def test_a_scale_that_is_not_used_says_nothing() -> None:
    known = LoadedCheckpoints()
    known.loaded(counted(20, scaler=scaler(8.0).state_dict()))
    saved = counted(30, scaler=scaler(2.0).state_dict())
    assert known.restarted(saved) == []
    known.unscales(torch.amp.GradScaler("cpu", enabled=False))
    assert known.restarted(counted(30, scaler={})) == []


def test_random_numbers_that_begin_anew() -> None:
    known = LoadedCheckpoints()
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(3)
        torch.rand(2000)
        other, read = torch.Generator().get_state(), torch.get_rng_state()
        known.loaded(counted(20, rng=[other, read]))
        torch.manual_seed(3)
        torch.rand(900)
        anew = counted(30, rng=[other, torch.get_rng_state()])
        assert known.restarted(anew) == ["rng.1"]
        torch.set_rng_state(read)
        assert (
            known.restarted(anew) == []
        )  # a generator of another name or rank: its stream is not this process's
        torch.rand(900)
        assert known.restarted(counted(30, rng=[other, torch.get_rng_state()])) == []
        torch.manual_seed(4)
        again = counted(30, rng=[other, torch.get_rng_state()])
        assert known.restarted(again) == ["rng.1"]
        known.seeds()  # the script draws as it wants to
        assert known.restarted(again) == []


def test_random_numbers_in_a_file_of_their_own() -> None:
    known = LoadedCheckpoints()
    with torch.random.fork_rng(devices=()):
        torch.rand(2000)
        known.loaded({"cpu": torch.get_rng_state()}, "rng.pt")
        known.loaded(counted(20), "last.pt")
        torch.manual_seed(torch.initial_seed())
        assert known.restarted(counted(30), "last.pt") == []
        assert known.restarted({"cpu": torch.get_rng_state()}, "rng.pt") == ["cpu"]


def test_the_file_whose_moments_an_optimizer_takes_over() -> None:
    known, mine, others = LoadedCheckpoints(), counted(20), counted(20)
    known.loaded(mine, "1.pt")
    known.loaded(others, "0.pt")
    assert known.files.goes_on_from(counted(30), "1.pt") == "own"
    known.files.given({"state": {}, "param_groups": []})
    known.files.given(others["opt"])
    assert known.files.goes_on_from(counted(30), "1.pt") == "other"
    known.files.given(mine["opt"])
    assert known.files.goes_on_from(counted(30), "1.pt") == "own"


def test_the_file_that_a_rank_goes_on_from(tmp_path: Path) -> None:
    known, checkpoint = LoadedCheckpoints(), counted(20)
    assert known.files.goes_on_from(checkpoint, "0.pt") == "none"
    known.loaded({"weight": torch.ones(2)}, "1.pt")
    assert known.files.goes_on_from(checkpoint, "1.pt") == "none"
    known.loaded(checkpoint, tmp_path / "0.pt")
    assert known.files.goes_on_from(checkpoint, "elsewhere/0.pt") == "own"
    assert known.files.goes_on_from(checkpoint, tmp_path / "1.pt") == "other"
    assert known.files.goes_on_from({"rng": torch.ones(2)}, tmp_path / "1.pt") == "none"
    assert known.files.goes_on_from(checkpoint, io.BytesIO()) == "none"
    known.loaded(checkpoint, io.BytesIO())
    known.loaded(checkpoint, str(tmp_path / "1.pt"))
    assert known.files.goes_on_from(checkpoint, "1.pt") == "own"


def test_random_numbers_of_python_that_begin_anew() -> None:
    known, other, kept = LoadedCheckpoints(), random.Random(1).getstate(), random.getstate()
    try:
        random.seed(5)
        random.random()
        read = random.getstate()
        random.seed(6)
        known.loaded(counted(20, rng=[{"python": other}, {"python": read}]))
        random.random()
        state = [{"python": other}, {"python": random.getstate()}]
        assert known.restarted(counted(30, rng=state)) == ["rng.1.python"]
        random.setstate(read)
        random.random()
        state = [{"python": other}, {"python": random.getstate()}]
        assert known.restarted(counted(30, rng=state)) == []
        known.loaded({"python": read}, "rng.pt")
        known.loaded(counted(20), "last.pt")
        assert known.restarted(counted(30), "last.pt") == []
        random.random()
        assert known.restarted({"python": random.getstate()}, "rng.pt") == []
    finally:
        random.setstate(kept)
