"""The end of a window that a recording cuts off: nothing is known there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tspec.runtime.calls.call import CallRecord
from tspec.runtime.edges import Missing, Ref
from tspec.runtime.instant import StateInstant
from tspec.runtime.values import NOT_RECORDED
from tspec.values import Datum


class CutOffInstant(StateInstant):
    """The state at such an end."""

    __slots__ = ()

    def column(self, kind: str, name: str) -> Mapping[str, Datum]:
        return {}

    def of_call(self, call: CallRecord, name: str) -> Datum:
        return NOT_RECORDED

    def refs(self, kind: str) -> tuple[Ref, ...] | Missing:
        return NOT_RECORDED

    def restricted(self, collection: Datum, filters: Sequence[tuple[str, Datum]]) -> Datum:
        return NOT_RECORDED if isinstance(collection, (tuple, frozenset)) else collection

    def _ambient(self, name: str) -> Datum:
        return self.source.rank if name == "rank" else NOT_RECORDED
