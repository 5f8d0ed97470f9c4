"""Values that a device still computes, or that are on their way from it. They are waited for when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Protocol

from tspec.values import Datum

Columns = Mapping[str, Sequence[Datum]]


class Transfer(Protocol):
    """A copy from a device that was started and not waited for."""

    def arrived(self) -> bool:
        """True if reading the values does not wait."""


class NumberInTransfer:
    """A number that a device holds."""

    __slots__ = ("_read", "_transfer")

    def __init__(self, transfer: Transfer, read: Callable[[], Datum]) -> None:
        self._transfer = transfer
        self._read = read

    def arrived(self) -> bool:
        """True if reading the number does not wait."""
        return self._transfer.arrived()

    def read(self) -> Datum:
        """The number. It may wait for the device."""
        return self._read()


def arrived(value: Datum) -> Datum:
    """A value. A number in transfer is waited for."""
    return value.read() if value.__class__ is NumberInTransfer else value


class ColumnsInTransfer:
    """Features of several tensors, by name, that come in one transfer."""

    __slots__ = ("_found", "_read", "transfer")

    def __init__(self, transfer: Transfer, read: Callable[[], Columns]) -> None:
        self.transfer = transfer
        self._read: Callable[[], Columns] | None = read
        self._found: Columns = {}

    def read(self) -> Columns:
        """The columns. It may wait for the device."""
        if self._read is not None:
            self._found, self._read = self._read(), None
        return self._found


class RowInTransfer(MutableMapping[str, Datum]):
    """The features of one tensor, some of which are in transfer."""

    __slots__ = ("_columns", "_names", "_place", "_row")

    def __init__(
        self,
        row: dict[str, Datum],
        names: Sequence[str],
        columns: ColumnsInTransfer,
        place: int,
    ) -> None:
        self._row = row
        self._names: Sequence[str] = names
        self._columns: ColumnsInTransfer | None = columns
        self._place = place

    @property
    def transfer(self) -> Transfer | None:
        """The transfer; None if it has been waited for."""
        return None if self._columns is None else self._columns.transfer

    def _whole(self) -> dict[str, Datum]:
        if self._columns is not None:
            columns, place = self._columns.read(), self._place
            self._row.update({name: columns[name][place] for name in self._names})
            self._columns, self._names = None, ()
        return self._row

    def __getitem__(self, name: str) -> Datum:
        return (self._whole() if name in self._names else self._row)[name]

    def __setitem__(self, name: str, value: Datum) -> None:
        (self._whole() if name in self._names else self._row)[name] = value

    def __delitem__(self, name: str) -> None:
        del self._whole()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())
