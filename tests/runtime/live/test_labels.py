"""The labels of class losses, and the logits that they pick."""

import pytest
import torch
from torch.nn import functional as F

from tspec.runtime.live.losses.labels import (
    averages_all_places,
    counted_kinds,
    own_logits_alike,
    right_logits_alike,
    right_logits_twice,
    scored_padding,
)

IGNORED = -100


def labels(*counted: int, ignored: int = 4) -> torch.Tensor:
    return torch.tensor([*counted, *[IGNORED] * ignored])


@pytest.mark.parametrize(
    ("target", "kinds"),
    [
        (labels(*[17] * 9), 1),
        (labels(*[17, 3, 3] * 4), 2),
        (labels(*[17] * 9, ignored=0), None),
        (labels(*[17] * 7), None),
        (labels(*[0] * 9), None),
        (labels(*[1] * 9), None),
        (labels(*[0, 1] * 9), 2),
        (torch.rand(8, 3), None),
    ],
)
def test_kinds_of_labels_that_count(target: torch.Tensor, kinds: int | None) -> None:
    assert counted_kinds(target, IGNORED) == kinds


def test_logits_of_the_right_answers() -> None:
    rows = torch.arange(10)
    logits = torch.randn(10, 10, generator=torch.Generator().manual_seed(0))
    assert right_logits_alike(logits, rows, IGNORED) is False
    alike = logits.clone()
    alike[rows, rows] = 5.0
    assert right_logits_alike(alike, rows, IGNORED) is True
    alike[0, 0] = 4.0
    assert right_logits_alike(alike, rows, IGNORED) is False
    assert right_logits_alike(alike, torch.where(rows == 0, IGNORED, rows), IGNORED) is True
    alike[1, 2] = -torch.inf
    assert right_logits_alike(alike, torch.where(rows == 0, IGNORED, rows), IGNORED) is True


def test_answers_to_one_input_are_all_the_same() -> None:
    logits = torch.randn(1, 10, generator=torch.Generator().manual_seed(0)).expand(10, 10)
    assert right_logits_alike(logits, torch.zeros(10, dtype=torch.long), IGNORED) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_samples_that_are_compared_with_themselves_in_low_precision(dtype: torch.dtype) -> None:
    """The length of a unit vector is 1 up to the epsilon of the similarities."""
    vectors = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
        unit = torch.nn.functional.normalize(vectors, dim=1)
        logits = unit @ unit.t() / 0.2
    assert logits.dtype == dtype
    labels = (torch.arange(64) + 1) % 64
    assert own_logits_alike(logits, labels, IGNORED) is True
    assert right_logits_alike(logits, torch.arange(64), IGNORED) is True
    logits.fill_diagonal_(4.9)
    logits[0, 0] = 4.8
    assert own_logits_alike(logits, labels, IGNORED) is False
    assert right_logits_alike(logits, torch.arange(64), IGNORED) is False


def test_masked_logits_do_not_count() -> None:
    rows = torch.arange(10)
    logits = torch.randn(10, 10, generator=torch.Generator().manual_seed(0))
    logits[rows, (rows + 1) % 10] = -1e9
    assert right_logits_alike(logits, rows, IGNORED) is False
    logits[rows, rows] = 5.0
    assert right_logits_alike(logits, rows, IGNORED) is True


def test_right_answers_among_the_wrong_ones() -> None:
    labels = torch.zeros(10, dtype=torch.long)
    logits = torch.randn(10, 40, generator=torch.Generator().manual_seed(0))
    assert right_logits_twice(logits, labels, IGNORED) is False
    logits[torch.arange(10), torch.arange(10) + 5] = logits[:, 0] * (1 + 1e-7)
    assert right_logits_twice(logits, labels, IGNORED) is True
    logits[3, 8] = 9.0
    assert right_logits_twice(logits, labels, IGNORED) is False
    assert right_logits_twice(logits, torch.where(logits[:, 8] == 9, IGNORED, 0), IGNORED) is True
    assert right_logits_twice(logits.round(), labels, IGNORED) is None


def test_samples_among_their_own_rivals() -> None:
    matches = torch.arange(10).roll(5)
    views = F.normalize(torch.randn(10, 4, generator=torch.Generator().manual_seed(0)), dim=1)
    logits = views @ views.T / 0.2
    assert own_logits_alike(logits, matches, IGNORED) is True
    assert own_logits_alike(torch.cat([logits, -logits], 1), matches, IGNORED) is True
    assert own_logits_alike(logits, torch.arange(10), IGNORED) is False
    assert own_logits_alike(logits.fill_diagonal_(-1e9), matches, IGNORED) is False
    assert own_logits_alike(torch.randn(10, 9), matches.clamp(max=8), IGNORED) is None


def test_large_logits_are_not_copied() -> None:
    logits, labels = torch.zeros(1, 1).expand(1 << 13, 1 << 20), torch.zeros(1 << 13, dtype=int)
    assert right_logits_alike(logits, labels, IGNORED) is None


def test_logits_that_tell_nothing() -> None:
    rows = torch.arange(10)
    assert right_logits_alike(torch.zeros(10, 10), rows, IGNORED) is None
    assert right_logits_alike(torch.randn(7, 10), rows[:7], IGNORED) is None
    assert right_logits_alike(torch.randn(10, 7), rows % 7, IGNORED) is None
    assert right_logits_alike(torch.randn(10, 10, 2), torch.zeros(10, 2).long(), IGNORED) is None
    assert right_logits_alike(torch.randn(10, 10), torch.rand(10, 10), IGNORED) is None
    assert right_logits_alike(torch.full((10, 10), torch.nan), rows, IGNORED) is None


@pytest.mark.parametrize("places", [(), (5,)])
def test_losses_of_places_that_are_averaged_as_they_are(places: tuple[int, ...]) -> None:
    logits = torch.randn(8, 3, *places, requires_grad=True)
    labels = torch.randint(0, 3, (8, *places))
    losses = F.cross_entropy(logits, labels, reduction="none")
    keep = torch.ones_like(losses)
    assert averages_all_places(losses.mean())
    assert averages_all_places(losses.flatten().mean() + logits.square().mean())
    assert not averages_all_places((losses * keep).mean())
    assert not averages_all_places(losses.sum() / keep.sum())
    assert not averages_all_places(losses[labels > 0].mean())
    assert not averages_all_places(F.cross_entropy(logits, labels))


def padded(rows: int = 10, places: int = 6, classes: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits `[rows, places, classes]`, the same at all padding, and labels that ignore it."""
    is_padding = torch.arange(places) > torch.arange(rows)[:, None] % places
    logits = torch.randn(rows, places, classes, generator=torch.Generator().manual_seed(0))
    logits[is_padding] = torch.arange(float(classes))
    return logits, torch.zeros(rows, places).long().masked_fill(is_padding, IGNORED)


def test_labels_at_the_logits_of_padding() -> None:
    logits, target = padded()
    assert scored_padding(logits.flatten(0, 1), target.flatten(), IGNORED) == 0.0
    swapped = logits.flip(0)
    found = scored_padding(swapped.flatten(0, 1), target.flatten(), IGNORED)
    assert found is not None and found > 0.2
    assert scored_padding(swapped.movedim(2, 1), target, IGNORED) == found


def test_logits_of_no_padding() -> None:
    logits, target = padded()
    flat, labels = logits.flatten(0, 1), target.flatten()
    assert scored_padding(flat, labels.clamp(min=0), IGNORED) is None
    assert scored_padding(torch.randn(60, 5), labels, IGNORED) is None
    assert scored_padding(torch.zeros(60, 5), labels, IGNORED) is None
    assert scored_padding(flat.where(flat > 3, torch.nan), labels, IGNORED) is None
    assert scored_padding(flat, torch.rand(60, 5), IGNORED) is None
    assert scored_padding(None, labels, IGNORED) is None


def test_logits_of_a_model_that_sees_single_tokens() -> None:
    """The commonest token is no padding: other tokens have the same logits everywhere too."""
    _, target = padded()
    tokens = torch.arange(60) * 7 % 12 * (torch.arange(60) % 2)
    assert scored_padding(torch.randn(12, 5)[tokens], target.flatten(), IGNORED) is None
