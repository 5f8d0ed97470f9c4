"""The digest: equal tensors have equal ones, and what training bugs do to tensors changes them."""

import pytest
import torch

from tspec.runtime.live.digest import SMALL, digests
from tspec.runtime.live.features import features

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.uint8, torch.bool, torch.complex64, torch.complex128,
]  # fmt: skip


def digest(tensor: torch.Tensor) -> int:
    return int(digests([tensor])[0])


def draw(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator) * 10).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9, 1000, 2 * SMALL + 1, 50_001])
def test_copies_and_views_agree(dtype: torch.dtype, count: int) -> None:
    tensor = draw(count, dtype=dtype)
    behind = torch.cat((draw(3, dtype=dtype), tensor))[3:]
    strided = torch.stack((tensor, tensor), 1)[:, 0]
    assert digest(tensor) == digest(tensor.clone()) == digest(behind) == digest(strided)


def test_a_batch_gives_each_its_own() -> None:
    tensors = [draw(n, dtype=d, seed=n) for n in (0, 1, 5, 64, 40_000, 3) for d in DTYPES[:6]]
    assert digests(tensors).tolist() == [digest(tensor) for tensor in tensors]


def test_transposed_is_not_contiguous_is_equal() -> None:
    tensor = draw(37, 53)
    assert digest(tensor.t()) == digest(tensor.t().contiguous()) != digest(tensor)


def test_rows_columns_and_halves_that_change_places() -> None:
    for rows, columns in ((8, 8), (64, 32), (300, 300), (509, 1006), (1006, 509), (2048, 64)):
        tensor = draw(rows, columns)
        same = digest(tensor)
        others = [tensor.t(), tensor.flip(0), tensor.flip(1), tensor.roll(1, 0), tensor.roll(1, 1)]
        others += [
            torch.cat((tensor[rows // 2 :], tensor[: rows // 2])),
            tensor[torch.randperm(rows)],
        ]
        assert same not in [digest(other) for other in others]


def test_permutation_matrices_and_masks() -> None:
    seen = set()
    for seed in range(200):
        order = torch.randperm(300, generator=torch.Generator().manual_seed(seed))
        seen.add(digest(torch.eye(300)[order]))
        seen.add(digest((draw(300, 300, seed=seed) > 0).float()))
    assert len(seen) == 400


@pytest.mark.parametrize("size", [64, 260, 512])
def test_one_element_more_or_elsewhere(size: int) -> None:
    zeros = torch.zeros(size, size)
    seen = {digest(zeros)}
    for place in range(0, size * size, size * size // 200):
        one = zeros.clone()
        one.view(-1)[place] = 1.0
        seen.add(digest(one))
    assert len(seen) == 1 + len(range(0, size * size, size * size // 200))


@pytest.mark.parametrize("count", [100, 100_000])
def test_bits_count(count: int) -> None:
    zeros, tensor = torch.zeros(count), draw(count)
    negative = zeros.clone()
    negative[count // 2 + 1] = -0.0
    assert digest(zeros) != digest(negative)
    for place in (0, 1, count - 1):
        flipped = tensor.clone()
        flipped[place] = -flipped[place]
        assert digest(flipped) != digest(tensor)
    nan = tensor.clone()
    nan[3] = float("nan")
    assert digest(nan) == digest(nan.clone()) != digest(tensor)


def test_two_signs_that_flip_do_not_cancel() -> None:
    for count in (64, 100_000):
        tensor, seen = draw(count), set()
        for a, b in ((1, 3), (1, 5), (3, 5), (0, 1), (2, 4), (1, count - 1)):
            flipped = tensor.clone()
            flipped[[a, b]] *= -1
            seen.add(digest(flipped))
        assert len(seen | {digest(tensor)}) == 7


def test_sizes_of_zeros_differ() -> None:
    sizes = [0, 1, 2, 3, 4, 1000, 1001, 100_000, 100_001]
    assert len({digest(torch.zeros(n)) for n in sizes}) == len(sizes)


def test_values_do_not_depend_on_the_machine() -> None:
    """Recorded once; a digest of one recording is compared with those of another."""
    tensor = torch.arange(10, dtype=torch.float32)
    assert digest(tensor) == digest(torch.arange(10.0)[None])
    large = torch.arange(100_000, dtype=torch.float32)
    assert digest(large) == digest(large.view(100, 1000).t().contiguous().t())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_gpu_agrees() -> None:
    for dtype in DTYPES:
        tensors = [draw(n, dtype=dtype, seed=n) for n in (0, 1, 9, 1000, 100_003)]
        assert digests(tensors).tolist() == digests([t.cuda() for t in tensors]).tolist()


def test_features_are_those_of_float64() -> None:
    for count in (1, 100, 10_000, 200_000):
        tensor = draw(count)
        tensor[0] = 0.0
        wanted = (
            "norm",
            "sum",
            "mean",
            "std",
            "min",
            "max",
            "zeros",
            "finite",
            "numel",
            "shape",
            "dtype",
        )
        found = features([tensor], wanted)[0]
        exact = tensor.double()
        assert found["norm"] == pytest.approx(float(exact.norm()), rel=1e-6)
        assert found["sum"] == pytest.approx(float(exact.sum()), rel=1e-4, abs=1e-2)
        assert found["mean"] == pytest.approx(float(exact.mean()), rel=1e-4, abs=1e-6)
        assert found["std"] == pytest.approx(float(exact.std(correction=0)), rel=1e-9)
        assert (found["min"], found["max"]) == (float(tensor.min()), float(tensor.max()))
        assert (found["zeros"], found["finite"], found["numel"]) == (1, True, count)
        assert (found["shape"], found["dtype"]) == ((count,), "float32")


def test_what_is_not_finite() -> None:
    tensors = [
        torch.tensor([1.0, float("nan")]),
        torch.tensor([float("inf")]),
        torch.full((4,), 1e38),
    ]
    assert [row["finite"] for row in features(tensors, ("finite",))] == [False, False, True]
    huge = torch.full((100_000,), 3e38)
    assert features([huge], ("finite", "norm"))[0] == {
        "finite": True,
        "norm": pytest.approx(3e38 * 100_000**0.5),
    }


def test_integers_and_nothing() -> None:
    found = features(
        [torch.tensor([3, -4]), torch.empty(0, dtype=torch.int64)], ("norm", "min", "zeros")
    )
    assert found[0] == {"norm": 5.0, "min": -4.0, "zeros": 0}
    assert found[1]["norm"] == 0.0 and found[1]["zeros"] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("count", [65_536, 65_537, 131_072, 300_001])
def test_zeros_of_long_tensors_are_counted_exactly(dtype: torch.dtype, count: int) -> None:
    tensor = draw(count, dtype=dtype)
    tensor[::7] = 0.0
    tensor[count - 1] = -0.0
    tensor[1], tensor[2], tensor[3] = float("nan"), float("inf"), torch.finfo(dtype).tiny
    strided = torch.stack((tensor, torch.ones_like(tensor)), 1)[:, 0]
    expected = count - int(torch.count_nonzero(tensor))
    assert expected > count // 7
    assert [row["zeros"] for row in features([tensor, strided], ("zeros",))] == [expected] * 2


def test_values_are_read_where_the_script_builds_elsewhere() -> None:
    """Within `torch.device("meta")`, as models are built before their weights are loaded."""
    names = ("digest", "norm", "zeros", "mean", "std", "min", "max", "finite")
    tensors = [draw(100_003), draw(77), draw(5, 11)]
    with torch.device("meta"):
        found = features(tensors, names)
    assert found == features(tensors, names)
    assert found[0]["digest"] == digest(tensors[0])


def test_devices_without_float64_are_read_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU stands in for such a device: no machine of ours has one."""
    copied = []
    copy = torch.Tensor.cpu

    def counted(self: torch.Tensor) -> torch.Tensor:
        copied.append(self.shape)
        return copy(self)

    monkeypatch.setattr("tspec.runtime.live.features.WITHOUT_FLOAT64", frozenset(("cpu",)))
    monkeypatch.setattr(torch.Tensor, "cpu", counted)
    [row] = features([draw(3)], ("norm", "digest"))
    assert copied == [(3,)]
    assert row["norm"] == pytest.approx(float(draw(3).norm()))
