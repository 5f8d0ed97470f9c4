"""Comparison of records to the bit: NaN with its payload, -0.0, True apart from 1."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping
from enum import Enum
from typing import Any


def bits(value: Any) -> Any:
    """A value that compares equal only with those that are the same to the bit, types included."""
    if isinstance(value, float):
        return "float", struct.pack(">d", value)
    if isinstance(value, Enum) or value is None or isinstance(value, bool | int | str):
        return type(value).__name__, value
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return type(value).__name__, *(bits(getattr(value, name)) for name in names)
    if isinstance(value, tuple):
        return "tuple", *(bits(item) for item in value)
    if isinstance(value, frozenset):
        return "set", *sorted((bits(item) for item in value), key=repr)
    assert isinstance(value, Mapping), value
    return "map", *((key, bits(item)) for key, item in value.items())
