"""Objects that are alive, as the garbage collector knows them."""

from __future__ import annotations

import gc
from itertools import chain, compress, repeat
from typing import Any

from tspec.runtime.live.process import PROCESS


def instances_of(kinds: frozenset[type]) -> list[Any]:
    """All living objects of exactly these classes, in the order of the collector.

    No other thread may run while the list of all objects exists: the list holds tuples that a
    thread has not yet filled, and CPython refuses to resize a tuple with a second reference. So the
    list is made, read twice, filtered and dropped within one call of `list`, in C. The iterators
    over the list are in it too. They are exhausted at the end and drop their reference to it;
    otherwise the cycle would keep the list until the next collection.
    """
    wanted = frozenset(map(id, kinds))
    twice = chain.from_iterable(map(repeat, map(gc.get_objects, (None,)), (2,)))
    things = chain(
        chain.from_iterable(twice), (None,)
    )  # one more than types, which so come to their end
    types = map(type, chain.from_iterable(twice))
    with PROCESS.without_collection():  # finalizers are Python code
        return list(compress(things, map(wanted.__contains__, map(id, types))))
