"""Follows the inputs of embeddings, if a field is computed from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.mechanisms.backward import BACKWARD
from tspec.runtime.live.watched import Listener, Role

EMBEDDING = "torch.nn.functional.embedding"


class EmbeddingListener(Listener):
    """Remembers the tokens of each call."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Rows are looked up."""
        padding = args[2] if len(args) > 2 else kwargs.get("padding_idx")
        table = args[1] if len(args) > 1 else kwargs.get("weight")
        self._job.state.tokens.given(args[0] if args else kwargs["input"], padding, table)


class LearntListener(Listener):
    """Clears the remembered tokens when a backward pass has ended."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job

    def ended(self, token: Any) -> None:
        """A backward pass is over."""
        self._job.state.tokens.clear()


def install(job: FollowedJob) -> None:
    """Follow the inputs of embeddings, if a field is computed from them."""
    if not job.spec.follows("tokens"):
        return
    tokens = job.state.tokens

    def compares(_: Any) -> bool:
        return not tokens.is_over()

    given, learnt = EmbeddingListener(job), LearntListener(job)
    job.functions.watch_path(Role("tokens", given, path=EMBEDDING, guard=compares))
    job.functions.watch_path(Role("tokens learnt", learnt, path=BACKWARD, guard=compares))
