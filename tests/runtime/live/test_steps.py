"""Where a loop stands, from bare sequences of what it does."""

from functools import reduce

import pytest

from tspec.runtime.live.activities import (
    Activity,
    Backward,
    Clear,
    Fetch,
    Forward,
    Joined,
    LivingOptimizers,
    Microbatch,
    Resumed,
    Scheduled,
    Shadowed,
    StepAnnotated,
    Stepped,
    Update,
)
from tspec.runtime.live.steps import LoopState, advance, is_empty, openings

CLEAR = Clear(frozenset({0}))
TRAIN = Forward(grad=True, training=True)
EVAL = Forward(grad=False, training=False)
PASSES = (Backward(), Backward(ended=True))


def update(optimizer: int = 0) -> tuple[Activity, ...]:
    return (Update(optimizer), Update(optimizer, ended=True))


def fetch(reading: int = 1, loader: int = 0, grad: bool = True) -> Fetch:
    return Fetch(loader, reading, grad)


def run(
    *parts: Activity | tuple[Activity, ...], start: LoopState | None = None
) -> list[tuple[str, int]]:
    """Each activity's name and the step in which it lies."""
    place = start or LoopState(alive=frozenset({0}))
    seen = []
    for part in parts:
        for activity in part if isinstance(part, tuple) else (part,):
            place = advance(place, activity)
            name = type(activity).__name__
            if not getattr(activity, "ended", False):
                seen.append((name, place.step))
    return seen


def steps_of(seen: list[tuple[str, int]]) -> dict[int, str]:
    """The initials of what lies in each step."""
    found: dict[int, str] = {}
    for name, step in seen:
        found[step] = found.get(step, "") + name[0]
    return found


def test_plain_loop() -> None:
    turn = (fetch(), CLEAR, TRAIN, *PASSES, *update())
    assert steps_of(run(turn, turn, turn)) == {1: "FCFBU", 2: "FCFBU", 3: "FCFBU"}


def test_clearing_after_the_update_lies_in_its_step() -> None:
    turn = (fetch(), TRAIN, *PASSES, *update(), CLEAR)
    assert steps_of(run(turn, turn)) == {1: "FFBUC", 2: "FFBUC"}


def test_no_loader() -> None:
    before = (CLEAR, TRAIN, *PASSES, *update())
    after = (TRAIN, *PASSES, *update(), CLEAR)
    between = (TRAIN, CLEAR, *PASSES, *update())
    assert steps_of(run(before, before)) == {1: "CFBU", 2: "CFBU"}
    assert steps_of(run(after, after)) == {1: "FBUC", 2: "FBUC"}
    assert steps_of(run(between, between)) == {1: "FCBU", 2: "FCBU"}


def test_no_clear_at_all() -> None:
    assert steps_of(run((TRAIN, *PASSES, *update()), (TRAIN, *PASSES, *update()))) == {
        1: "FBU",
        2: "FBU",
    }
    turn = (fetch(), TRAIN, *PASSES, *update())
    assert steps_of(run(turn, turn)) == {1: "FFBU", 2: "FFBU"}


def test_gradient_accumulation_counts_microbatches() -> None:
    place = LoopState(alive=frozenset({0}))
    half = (fetch(), TRAIN, *PASSES)
    seen = []
    for activity in (CLEAR, *half, *half, *update(), CLEAR, *half, *half, *half, *update()):
        place = advance(place, activity)
        if isinstance(activity, Fetch):
            seen.append((place.step, place.microbatch))
    assert seen == [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3)]


def test_two_optimizers_update_in_one_step() -> None:
    both = LoopState(alive=frozenset({0, 1}))
    first = (Clear(frozenset({0})), TRAIN, *PASSES, *update(0))
    second = (Clear(frozenset({1})), TRAIN, *PASSES, *update(1))
    fed = run((fetch(), *first, *second), (fetch(), *first, *second), start=both)
    assert steps_of(fed) == {1: "FCFBUCFBU", 2: "FCFBUCFBU"}
    unfed = run(first, second, first, second, start=both)
    assert steps_of(unfed) == {1: "CFBUCFBU", 2: "CFBUCFBU"}


def test_a_critic_that_updates_more_often() -> None:
    both = LoopState(alive=frozenset({0, 1}))
    critic = (fetch(), Clear(frozenset({0})), TRAIN, *PASSES, *update(0))
    generator = (Clear(frozenset({1})), TRAIN, *PASSES, *update(1))
    seen = run((*critic, *generator), critic, (*critic, *generator), start=both)
    assert steps_of(seen) == {1: "FCFBUCFBU", 2: "FCFBU", 3: "FCFBUCFBU"}


def test_evaluation_belongs_to_the_step_before_and_is_no_training() -> None:
    turn = (fetch(), CLEAR, TRAIN, *PASSES, *update())
    evaluation = (fetch(2, loader=1, grad=False), EVAL, fetch(2, loader=1, grad=False), EVAL)
    seen = run(turn, evaluation, turn)
    assert steps_of(seen) == {1: "FCFBUFFFF", 2: "FCFBU"}
    place = reduce(advance, (*turn, *evaluation), LoopState(alive=frozenset({0})))
    assert (place.phase, place.step) == ("eval", 1)
    assert advance(place, fetch()).phase == "train"


def test_clearing_with_a_loader_opens_no_step() -> None:
    turn = (fetch(), TRAIN, *PASSES, *update(), CLEAR)
    evaluation = (Fetch(1, 2, True, training=False), EVAL)
    seen = run(CLEAR, turn, evaluation, turn, turn)
    assert steps_of(seen) == {1: "CFFBUCFF", 2: "FFBUC", 3: "FFBUC"}


def test_batches_that_are_taken_ahead() -> None:
    turn = (TRAIN, *PASSES, *update(), CLEAR)
    seen = run(fetch(), fetch(), turn, fetch(), turn, turn, fetch(2), fetch(2), turn)
    assert [step for name, step in seen if name == "Update"] == [1, 2, 3, 4]
    assert steps_of(seen)[3] == "FBUC"


def test_a_later_training_whose_batches_are_taken_ahead() -> None:
    """The optimizer of the training before it is still there, and updates no more."""

    def training(optimizer: int, reading: int) -> tuple[Activity, ...]:
        turn = (TRAIN, *PASSES, *update(optimizer), Clear(frozenset({optimizer})))
        ahead = fetch(reading, loader=optimizer)
        return (ahead, ahead, *turn, ahead, *turn, *turn)

    both = LivingOptimizers(frozenset({0, 1}))
    seen = run(training(0, 1), both, training(1, 2), training(1, 3))
    assert [step for name, step in seen if name == "Update"] == [*range(1, 10)]


def test_several_updates_from_one_batch() -> None:
    turn = (CLEAR, TRAIN, *PASSES, *update())
    seen = run(fetch(), turn, turn, fetch(), turn)
    assert [step for name, step in seen if name == "Update"] == [1, 2, 3]


def test_an_evaluation_between_a_batch_and_its_passes_is_no_training() -> None:
    turn = (TRAIN, *PASSES, *update(), CLEAR)
    evaluation = (Fetch(1, 2, True, training=False), EVAL, Fetch(1, 2, True, training=False), EVAL)
    place = reduce(
        advance, (fetch(), fetch(), *turn, *evaluation, *turn), LoopState(alive=frozenset({0}))
    )
    assert place.feeding == {0}
    assert (place.epoch, advance(place, evaluation[0]).phase) == (1, "eval")


def test_a_forgotten_eval_makes_no_training_loader() -> None:
    turn = (fetch(), CLEAR, TRAIN, *PASSES, *update())
    forgotten = (fetch(2, loader=1), Forward(grad=False, training=True))
    place = reduce(advance, (*turn, *forgotten, *forgotten, *turn), LoopState(alive=frozenset({0})))
    assert place.feeding == {0}


def test_two_loaders_that_are_read_together_both_train() -> None:
    teacher = Forward(grad=False, training=True)
    turn = (fetch(), fetch(2, loader=1), CLEAR, teacher, TRAIN, *PASSES, *update())
    place = reduce(advance, (*turn, *turn), LoopState(alive=frozenset({0})))
    assert (place.feeding, place.step) == ({0, 1}, 2)


def test_epochs_are_passes_over_the_training_loader() -> None:
    turn = (CLEAR, TRAIN, *PASSES, *update())
    place = reduce(advance, (fetch(1), *turn, fetch(1), *turn), LoopState(alive=frozenset({0})))
    assert place.epoch == 1
    place = reduce(advance, (fetch(7, loader=1, grad=False), EVAL), place)
    assert place.epoch == 1
    after = advance(place, fetch(2))
    assert after.epoch == 2
    assert openings(place, after) == (("epoch", 2), ("step", 3), ("microbatch", 1))


def test_a_run_without_loader_is_one_epoch() -> None:
    turn = (CLEAR, TRAIN, *PASSES, *update())
    assert reduce(advance, (*turn, *turn), LoopState(alive=frozenset({0}))).epoch == 1


def test_a_clear_before_the_first_batch_opens_the_first_epoch_once() -> None:
    place = reduce(advance, (CLEAR, fetch(1), TRAIN), LoopState(alive=frozenset({0})))
    assert (place.step, place.epoch) == (1, 1)


def test_closures_lie_in_one_step() -> None:
    closure = (CLEAR, TRAIN, *PASSES)
    step = (Update(0), *closure, *closure, *closure, Update(0, ended=True))
    seen = run(step, step)
    assert {number for _, number in seen} == {1, 2}
    assert steps_of(seen)[1] == "UCFBCFBCFB"


def test_updates_by_hand() -> None:
    nothing = LoopState()
    turn = (fetch(), TRAIN, *PASSES)
    assert steps_of(run(turn, turn, turn, start=nothing)) == {1: "FFB", 2: "FFB", 3: "FFB"}


def test_another_model_is_trained_next() -> None:
    first = (TRAIN, CLEAR, *PASSES, *update(0))
    other = (TRAIN, Clear(frozenset({1})), *PASSES, *update(1))
    alive = LivingOptimizers(frozenset({0, 1}))
    seen = run(first, first, alive, other, other, other)
    assert {step for name, step in seen if name == "Update"} == {1, 2, 3, 4, 5}


def test_said_steps_override() -> None:
    turn = (fetch(), CLEAR, TRAIN, *PASSES, *update())
    seen = run(StepAnnotated(), turn, turn, StepAnnotated(), turn, StepAnnotated(10), turn)
    assert {step for name, step in seen if name == "Update"} == {1, 2, 10}


def test_a_resumed_job_goes_on_with_its_number() -> None:
    turn = (fetch(), CLEAR, TRAIN, *PASSES, *update())
    seen = run(Resumed(40), turn, turn)
    assert {step for name, step in seen if name == "Update"} == {41, 42}


def test_a_rank_that_has_joined_makes_no_steps_until_all_have() -> None:
    turn = (fetch(), CLEAR, TRAIN, *PASSES, *update())
    place = reduce(advance, (*turn, *turn), LoopState(alive=frozenset({0})))
    joined = advance(place, Joined())
    assert openings(place, joined) == (("step", 0),)
    helped = reduce(advance, update(), joined)
    assert openings(joined, helped) == ()
    after = reduce(advance, [Shadowed()] * 3, helped)
    assert (joined.step, after.step, openings(helped, after)) == (2, 5, ())
    opened = advance(after, fetch(reading=2))
    assert dict(openings(after, opened))["step"] == 6


def test_shadowed_passes_are_as_many_steps_as_they_would_be_here() -> None:
    turn = (fetch(), CLEAR, TRAIN, *PASSES, fetch(), TRAIN, *PASSES, *update())
    place = reduce(advance, turn, LoopState(alive=frozenset({0})))
    assert place.microbatch == 2
    shadowed = [advance(place, Joined())]
    for _ in range(3):
        shadowed.append(advance(shadowed[-1], Shadowed()))
    assert [each.step for each in shadowed] == [1, 2, 2, 3]


def test_shadowed_passes_first_complete_the_step_of_the_others() -> None:
    turn = (fetch(), CLEAR, TRAIN, *PASSES, fetch(), TRAIN, *PASSES, *update())
    shorter = (fetch(), CLEAR, TRAIN, *PASSES, *update())
    place = reduce(advance, (*turn, *shorter), LoopState(alive=frozenset({0})))
    assert (place.step, place.microbatch) == (2, 1)
    assert advance(advance(place, Joined()), Shadowed()).step == 2
    assert reduce(advance, [Joined(), Shadowed(), Shadowed()], place).step == 3


def test_an_update_within_another_leaves_that_under_way() -> None:
    """As the part of a sharded optimizer, which then sends what it has updated."""
    place = reduce(advance, (CLEAR, TRAIN, *PASSES), LoopState(alive=frozenset({0, 1})))
    within = reduce(advance, [Update(0), Update(1), Update(1, ended=True)], place)
    assert within.updating == {0}
    assert advance(within, Update(0, ended=True)).updating == set()


def test_nothing_closes_before_training() -> None:
    assert openings(LoopState(), advance(LoopState(), Joined())) == ()


def test_fine_tuning_in_evaluation_mode_is_training() -> None:
    frozen = Forward(grad=True, training=False)
    turn = (CLEAR, frozen, *PASSES, *update())
    place = reduce(advance, turn, LoopState(alive=frozenset({0})))
    assert advance(place, CLEAR).step == 2
    assert advance(advance(place, CLEAR), frozen).phase == "train"


@pytest.mark.parametrize("span", ["step", "microbatch"])
def test_nothing_opens_without_reason(span: str) -> None:
    place = reduce(advance, (fetch(), CLEAR, TRAIN, *PASSES), LoopState(alive=frozenset({0})))
    again = advance(place, CLEAR)
    assert span not in dict(openings(place, again))
    assert again._replace(cleared=place.cleared) == place


def scheduled(*inner: Activity) -> list[tuple[int, int]]:
    """Step and micro-batch after each activity."""
    place, seen = LoopState(), []
    for activity in inner:
        place = advance(place, activity)
        seen.append((place.step, place.microbatch))
    return seen


def test_a_framework_tells_its_steps() -> None:
    """An optimizer within an optimizer, no visible loader, an evaluation between: none of it opens a step."""
    turn = (Scheduled(), Clear(frozenset({0})), Scheduled(), TRAIN, *PASSES)
    updates = (*update(0), *update(1), Stepped())
    seen = steps_of(run(*turn, *updates, EVAL, *turn, Stepped(), *turn, *updates))
    assert seen == {
        1: "SCSFBUUSF",
        2: "SCSFBS",
        3: "SCSFBUUS",
    }


def test_a_framework_tells_which_microbatch_goes_forward_and_which_backward() -> None:
    numbers = (1, 2, 1, 3, 2, 3)
    passes = (each for n in numbers for each in (Microbatch(n), TRAIN))
    found = scheduled(Scheduled(), *passes, Stepped())
    assert [m for _, m in found[1:-1:2]] == list(numbers)
    assert {step for step, _ in found} == {1}


def test_passes_that_no_schedule_numbers_are_microbatches_of_a_step_that_a_framework_tells() -> (
    None
):
    """A loop of the script's own around a framework's model and optimizer, without its schedules."""
    passes = (TRAIN, *PASSES, TRAIN, *PASSES)
    found = scheduled(Scheduled(), *passes, Stepped(), Scheduled(), *passes)
    assert found[1:7] == [(1, 1)] * 3 + [(1, 2)] * 3
    assert found[-7:] == [(2, 1)] * 4 + [(2, 2)] * 3


def test_a_step_that_is_open_becomes_the_frameworks() -> None:
    assert scheduled(CLEAR, Scheduled(), Stepped(), Scheduled()) == [(1, 1)] * 3 + [(2, 1)]
    assert scheduled(CLEAR, *update(), Scheduled())[-1] == (2, 1)


def test_what_the_script_says_of_steps_stands() -> None:
    assert scheduled(StepAnnotated(7), Scheduled(), Stepped(), Scheduled())[-1] == (7, 1)


def test_a_schedule_of_stages_numbers_its_passes_forward_and_back() -> None:
    """As under 1F1B on the first of two stages: its second pass is made before the first goes back."""
    place = LoopState(alive=frozenset({0}))
    seen = []
    turn = [
        *(Forward(True, True, 1), Forward(True, True, 2)),
        *(Backward(microbatch=1), Backward(ended=True), Forward(True, True, 3)),
        *(Backward(microbatch=2), Backward(ended=True), Backward(microbatch=3)),
        *(Backward(ended=True), *update()),
    ]
    for activity in (*turn, *turn):
        place = advance(place, activity)
        if not getattr(activity, "ended", False):
            seen.append((place.step, place.microbatch))
    numbers = (1, 2, 1, 3, 2, 3, 3)
    assert seen == [(step, number) for step in (1, 2) for number in numbers]


def built(*alive: int) -> LivingOptimizers:
    return LivingOptimizers(frozenset(alive))


def test_an_optimizer_that_each_step_builds_anew() -> None:
    def turn(number: int) -> tuple[Activity, ...]:
        clear = Clear(frozenset({number}))
        living = built(number - 1, number) if number else built(0)
        return (living, clear, TRAIN, *PASSES, living, *update(number), built(number, number + 1))

    seen = run(turn(0), turn(1), turn(2), start=LoopState())
    assert [step for name, step in seen if name == "Update"] == [1, 2, 3]


@pytest.mark.parametrize("clears", ["before", "between"])
def test_an_optimizer_built_anew_does_not_wait_for_old_ones_that_something_holds(
    clears: str,
) -> None:
    def turn(number: int) -> tuple[Activity, ...]:
        living, clear = built(*range(number + 1)), Clear(frozenset(range(number + 1)))
        begin = (living, clear, TRAIN) if clears == "before" else (TRAIN, living, clear)
        return (*begin, *PASSES, living, *update(number))

    # Optimizer 0 was built before the loop, and never updates.
    seen = run(built(0), turn(1), turn(2), turn(3), turn(4), start=LoopState())
    assert [step for name, step in seen if name == "Update"] == [1, 2, 3, 4]


def test_a_second_optimizer_of_the_first_turn_belongs_to_it() -> None:
    both = built(0, 1)
    first = (both, CLEAR, TRAIN, *PASSES, *update(0))
    second = (both, Clear(frozenset({1})), TRAIN, *PASSES, *update(1))
    seen = run(first, second, first, second, start=LoopState())
    assert [step for name, step in seen if name == "Update"] == [1, 1, 2, 2]


@pytest.mark.parametrize(
    ("after", "empty"),
    [
        ((fetch(),), True),
        ((fetch(), CLEAR), True),
        ((fetch(), EVAL, EVAL), True),
        ((fetch(reading=2),), True),
        ((fetch(), TRAIN), False),
        ((fetch(), *PASSES), False),
        ((fetch(), *update()), False),
        ((fetch(), CLEAR, TRAIN, *PASSES, *update(), EVAL), False),
        ((), False),
        ((StepAnnotated(), fetch()), False),
        ((fetch(), Joined()), False),
    ],
)
def test_a_step_in_which_nothing_is_trained_is_empty(
    after: tuple[Activity, ...], empty: bool
) -> None:
    step = (fetch(), CLEAR, TRAIN, *PASSES, *update())
    place = reduce(advance, (*step, *step, *after), LoopState(alive=frozenset({0})))
    assert is_empty(place) is empty


def test_batches_alone_are_a_step_where_nothing_was_trained_before() -> None:
    assert not is_empty(reduce(advance, (fetch(), fetch()), LoopState()))
