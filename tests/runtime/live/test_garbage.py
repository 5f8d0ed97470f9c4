"""The threshold of garbage collection while jobs are followed."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tspec.runtime.live import LiveJob, WatchSpec
from tspec.runtime.live.garbage import SPACING, collected_less_often


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_jobs_collect_less_often_and_put_the_threshold_back() -> None:
    with LiveJob(WatchSpec(()), []):
        with LiveJob(WatchSpec(()), []):
            assert gc.get_threshold() == (SPACING * 700, 10, 10)
        assert gc.get_threshold() == (SPACING * 700, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


def test_a_threshold_that_the_script_sets_is_kept() -> None:
    with collected_less_often():
        gc.set_threshold(5000, 20, 20)
    assert gc.get_threshold() == (5000, 20, 20)


def test_collection_that_is_switched_off_stays_so() -> None:
    gc.set_threshold(0, 10, 10)
    with collected_less_often():
        assert gc.get_threshold() == (0, 10, 10)
