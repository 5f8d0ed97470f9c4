"""Objects that are alive, as the garbage collector knows them."""

from __future__ import annotations

import gc
from itertools import chain, compress, repeat
from typing import Any

from tspec.runtime.live.process import PROCESS


def instances_of(kinds: frozenset[type]) -> list[Any]:
    """All living objects of exactly these classes, in the order in which the collector knows them.

    While the list of all objects is there, no other thread may run: it holds tuples that one of them
    has not yet filled, and CPython refuses to resize a tuple that somebody else holds. So the list is made,
    read twice, filtered and dropped within one call of `list`, in C. What reads it is in the list as well: all of it
    is at its end then and lets go of the list, which a cycle would keep until the next collection.
    """
    wanted = frozenset(map(id, kinds))
    twice = chain.from_iterable(map(repeat, map(gc.get_objects, (None,)), (2,)))
    things = chain(
        chain.from_iterable(twice), (None,)
    )  # one more than types, which so come to their end
    types = map(type, chain.from_iterable(twice))
    with PROCESS.without_collection():  # finalizers are Python code
        return list(compress(things, map(wanted.__contains__, map(id, types))))
