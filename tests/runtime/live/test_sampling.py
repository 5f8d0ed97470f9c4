"""How often a job is looked at."""

import torch

from tspec.runtime.live.sampling import Sampling, TrainingSampling


def test_the_first_and_each_so_many_after_them() -> None:
    sampling = Sampling(first=3, every=5)
    assert [count for count in range(1, 17) if sampling.takes(count)] == [1, 2, 3, 5, 10, 15]
    assert [count for count in range(4, 17) if sampling.takes_with_next(count)] == [
        4,
        5,
        6,
        10,
        11,
        15,
        16,
    ]


def test_a_function_that_reads_in_its_first_calls() -> None:
    read = []

    def double(number: int) -> int:
        read.append(number)
        return 2 * number

    reads = TrainingSampling().of_first(2, double)
    assert [reads(number) for number in (3, 4, 5)] == [6, 8, None]
    assert read == [3, 4]


def test_each_training_has_first_calls() -> None:
    trainings = [1]
    reads = TrainingSampling(lambda: len(trainings)).of_first(2, abs)
    assert [reads(number) for number in (-1, -2, -3)] == [1, 2, None]
    trainings.append(2)
    assert [reads(number) for number in (-1, -2, -3)] == [1, 2, None]


def test_calls_without_a_graph_do_not_count() -> None:
    reads = TrainingSampling().of_first_with_graph(2, abs)
    with torch.no_grad():
        assert [reads(number) for number in (-1, -2, -3)] == [None] * 3
    assert [reads(number) for number in (-1, -2, -3)] == [1, 2, None]
