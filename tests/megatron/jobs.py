"""Jobs of megatron-core under `tspec`, as a user starts them."""

from __future__ import annotations

from pathlib import Path

from tests.jobs import done

TRAIN = "tests/megatron/train.py"


def recorded(folder: Path, layout: str, use: Path | str) -> None:
    """Record the job of a layout, with the events of a spec or a module."""
    options = ("record", "--use", str(use), "-o", str(folder))
    ended = done("-m", "tspec", *options, "--", TRAIN, layout)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "internal error" not in ended.stderr
    assert "the recording of rank" not in ended.stderr  # it ends before the job does
