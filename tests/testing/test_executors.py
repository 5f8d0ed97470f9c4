"""All executors decide alike what a script says again, and conditions that fold over ranks."""

from __future__ import annotations

import pytest

from tests.testing.specs import failures, suite
from tspec.testing.suite import Suite

AGAIN = """
invariant as_many_as_before {
  each microbatch
  when count(calls(backward)) > 0
  expect previous(count(calls(backward))) == count(calls(backward))
  else warn
}
"""
EPOCHS = AGAIN.replace("each microbatch", "each epoch")
GUARDED = """
extend event backward = call torch.autograd.backward {
  /// The graph is kept.
  kept: bool? = retain_graph
}

invariant kept_alike {
  across world
  after backward
  when all(present(backward.kept)) and %s
  expect present(backward.kept) implies same(backward.kept == true)
  else warn
}
"""


def verdicts(found: Suite) -> list[tuple[tuple[int, int], str]]:
    """The place and the verdict of each decision of the only test."""
    [test] = found.tests
    decided = (each for parts in test.test_run.decisions.values() for _, each in parts)
    return sorted((each.instance.at, each.verdict) for each in decided)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            "step 1 { microbatch = 1, backward, microbatch = 2, backward }",
            [((1, 1), "unknown"), ((1, 2), "holds")],
        ),
        (
            "step 1 { backward, microbatch = 1, backward, microbatch = 2, microbatch = 2, backward }",
            [((1, 1), "unknown"), ((1, 2), "violated")],
        ),
    ],
)
def test_a_microbatch_that_is_said_again_is_the_one_that_is_open(
    script: str, expected: list[tuple[tuple[int, int], str]]
) -> None:
    found = suite(f'{AGAIN}\ntest "t" {{ events {{ {script} }} passes as_many_as_before }}\n')
    assert verdicts(found) == expected


def test_an_epoch_that_is_said_again_is_the_one_that_is_open() -> None:
    script = "step 1 { epoch = 1, backward } step 2 { epoch = 1, backward } step 3 { epoch = 2, backward }"
    found = suite(f'{EPOCHS}\ntest "t" {{ events {{ {script} }} passes as_many_as_before }}\n')
    assert verdicts(found) == [((1, 0), "unknown"), ((2, 0), "violated")]


@pytest.mark.parametrize("guard", ["present(backward.kept)", "phase == train", "step < 9"])
def test_a_condition_that_folds_over_ranks_reads_them_all(guard: str) -> None:
    """On rank 1 the rest of the condition is false: the fold over both ranks is too, and not unknown."""
    script = """
      step 1 { rank 0 { backward(kept: true) } rank 1 { backward(kept: absent) } }
      step 2 { backward(kept: true) }
      step 3 { rank 0 { backward(kept: true) } rank 1 { phase = eval, backward(kept: absent) } }
      step 4 { phase = train, rank 0 { backward(kept: true) } rank 1 { backward(kept: false) } }
    """
    test = f'test "t" {{ events on 2 ranks {{ {script} }} violates kept_alike at step 4 }}\n'
    assert failures(f"{GUARDED % guard}\n{test}") == []


def test_micro_batches_whose_numbers_go_back_are_windows_of_their_own() -> None:
    """Under 1F1B a stage passes each of them forward, and later backward."""
    script = "step 1 { microbatch = 1, microbatch = 2, microbatch = 1, backward, microbatch = 2, backward }"
    end = "step 2 { microbatch = 1, backward, backward }"
    found = suite(f'{AGAIN}\ntest "t" {{ events {{ {script} {end} }} passes as_many_as_before }}\n')
    assert verdicts(found) == [
        ((1, 1), "idle"),
        ((1, 2), "idle"),
        ((1, 3), "violated"),
        ((1, 4), "holds"),
        ((2, 1), "violated"),
    ]


def test_each_second_micro_batch_is_one_with_an_even_number() -> None:
    rule = AGAIN.replace("each microbatch", "each microbatch every 2 microbatches")
    script = "step 1 { microbatch = 1, microbatch = 2, backward, microbatch = 1, backward, microbatch = 2, backward }"
    found = suite(f'{rule}\ntest "t" {{ events {{ {script} }} passes as_many_as_before }}\n')
    assert verdicts(found) == [((1, 2), "unknown"), ((1, 4), "holds")]
