"""What is compared with what: sweeps, what they require, which pairs have to agree, and which are enough."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tspec.equivalence.configurations import Configuration, configurations_of
from tspec.resolve import load_text

HEAD = """edition 2026

module example

mesh ranks {
  order: tp, dp
  tp: 2
  dp: 1
}

dims ranks {
  hidden: 8
}

layout cut on ranks {
  param "*": [hidden / tp] when sequence
}

equivalence e {
  layout cut
"""
TAIL = """
  run 1 step
  compare params
  within 0
}
"""


def configurations(clauses: str) -> tuple[Configuration, ...]:
    found = load_text(HEAD + clauses + TAIL)
    assert found.program is not None, found.diagnostics
    [declaration] = found.program.equivalences
    return configurations_of(declaration)


def sides(clauses: str) -> list[tuple[dict[str, object], dict[str, object]]]:
    return [(dict(each.reference), dict(each.candidate)) for each in configurations(clauses)]


def test_two_sides_are_one_comparison() -> None:
    assert sides("reference { tp: 1 }\n candidate { tp: 4 }") == [({"tp": 1}, {"tp": 4})]


def test_a_swept_setting_is_that_of_both_sides_unless_a_side_sets_it() -> None:
    clauses = 'reference { tp: 1 }\n sweep tp in [2, 4]\n sweep weights in ["a", "b"]'
    assert sides(clauses) == [
        ({"tp": 1, "weights": "a"}, {"tp": 2, "weights": "a"}),
        ({"tp": 1, "weights": "b"}, {"tp": 2, "weights": "b"}),
        ({"tp": 1, "weights": "a"}, {"tp": 4, "weights": "a"}),
        ({"tp": 1, "weights": "b"}, {"tp": 4, "weights": "b"}),
    ]
    assert [dict(each.unlike) for each in configurations(clauses)] == [{"tp": 1}] * 4


def test_required_are_settings_of_the_candidate_with_those_of_the_mesh() -> None:
    clauses = """reference { tp: 1, dp: 1 }
  sweep dp in [1, 2, 4]
  sweep sequence in [true, false]
  require world_size <= 4
  require sequence implies dp == 1
  require not sequence implies tp * dp > 2
"""
    found = [each["dp"] for _, each in sides(clauses)]
    assert found == [1, 2]


def test_without_a_reference_the_first_that_is_to_agree_is_one() -> None:
    clauses = """sweep tp in [1, 2]
  sweep weights in ["a", "b"]
  equal when reference.weights == candidate.weights
"""
    assert sides(clauses) == [
        ({"tp": 1, "weights": "a"}, {"tp": 2, "weights": "a"}),
        ({"tp": 1, "weights": "b"}, {"tp": 2, "weights": "b"}),
    ]
    assert [each for each, _ in sides("sweep tp in [1, 2, 4]")] == [{"tp": 1}, {"tp": 1}]


def test_pairs_that_are_not_to_agree_are_not_compared() -> None:
    clauses = """reference { tp: 1, dtype: float32 }
  sweep tp in [1, 2]
  sweep dtype in [float32, bfloat16]
  equal when reference.dtype == candidate.dtype and candidate.tp > reference.tp
"""
    assert [each for _, each in sides(clauses)] == [{"tp": 2, "dtype": "float32"}]


@pytest.mark.parametrize(("coverage", "together"), [("pairs", 2), ("triples", 3)])
@settings(max_examples=25, deadline=None)
@given(numbers=st.lists(st.integers(2, 4), min_size=1, max_size=4))
def test_what_is_covered_holds_all_that_occurs_together(
    coverage: str, together: int, numbers: list[int]
) -> None:
    """Each combination of values that an allowed configuration has, a chosen one has."""
    sweeps = "\n".join(
        f"  sweep s{n} in {list(range(1, size + 1))}" for n, size in enumerate(numbers)
    )
    clauses = f"reference {{ tp: 1 }}\n{sweeps}\n  require s0 == 1 or tp == 2 and s0 < 4\n"
    every = configurations(f"{clauses}  cover all")
    chosen = configurations(f"{clauses}  cover {coverage}")

    def parts(found: tuple[Configuration, ...]) -> set[tuple[object, ...]]:
        size = min(together, len(numbers))
        return {part for each in found for part in combinations(each.swept.items(), size)}

    assert every == configurations(clauses)
    assert set(map(str, chosen)) <= set(map(str, every))
    assert parts(chosen) == parts(every)


def test_pairs_of_many_sweeps_are_few() -> None:
    sweeps = "\n".join(f"  sweep s{n} in [1, 2, 3]" for n in range(6))
    clauses = f"reference {{ tp: 1 }}\n{sweeps}\n  cover"
    assert len(configurations(f"{clauses} all")) == 729
    assert len(configurations(f"{clauses} pairs")) <= 20
