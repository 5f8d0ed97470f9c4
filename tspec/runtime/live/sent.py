"""Counts what this rank sends others from one update to the next."""

from __future__ import annotations

FEW = 256
"""Fewer bytes than this hold a loss, counts or norms, and not what a rank has learned."""


class SentBytes:
    """The bytes that a rank gives to collectives and messages, whatever the others do with them."""

    def __init__(self) -> None:
        self._since_update = 0
        self._updated = False
        self.alone = True
        """Before none of the updates but the first, more than a few bytes were sent since the one before."""

    def add(self, size: int) -> None:
        """A collective or a message is given this many bytes. Those before the first update are
        not counted: ranks equalise their initial parameters there.
        """
        if self._updated:
            self._since_update += size

    def update_begins(self) -> None:
        """An update begins that lies in no other one."""
        self.alone &= self._since_update < FEW
        self._since_update = 0
        self._updated = True
