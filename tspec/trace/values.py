"""Values as JSON text, for the few that fit no typed column: lists, maps, sets, huge integers.

Lists are JSON lists and scalars are JSON scalars, so that a query can look into them. Other values
are an object whose one key is their kind: `{"set": [...]}`, `{"map": {...}}`, `{"ref": [kind,
name]}`, `{"tensor": {...}}`, `{"missing": "absent"}`, `{"float": bits}` for a float without a JSON
number, `{"int": hex}` for an int too long for Python to read in decimal.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

from tspec.trace.model import Location, Missing, Ref, Tensor, Value

_FEATURES = tuple(feature.name for feature in fields(Tensor))
_SMALL = 2**63


def encode(value: Value) -> str:
    """A value as JSON text; equal values give equal text, also sets."""
    return _dump(_plain(value))


def decode(text: str) -> Value:
    """The value that `encode` wrote as this text, to the bit."""
    return _value(json.loads(text))


@lru_cache(maxsize=4096)
def encode_location(location: Location) -> str:
    """A location as JSON text, `["train.py",41,"train_epoch","opt.step()"]`."""
    return _dump([location.file, location.line, location.function, location.text])


@lru_cache(maxsize=4096)
def decode_location(text: str) -> Location:
    """The location that `encode_location` wrote as this text. Raises ValueError for any other text."""
    match json.loads(text):
        case [str() as file, int() as line, str() as function, str() as code]:
            return Location(file, line, function, code)
    raise ValueError("it is no location")


_dump = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def _plain(value: Value) -> Any:
    if isinstance(value, Missing):
        return {"missing": value.value}
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if -_SMALL <= value < _SMALL else {"int": hex(value)}
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return {"float": struct.pack(">d", value).hex()}
    if isinstance(value, Ref):
        return {"ref": [value.kind, value.name]}
    if isinstance(value, Tensor):
        return {"tensor": _plain_features(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, frozenset):
        return {"set": sorted((_plain(item) for item in value), key=_dump)}
    if isinstance(value, Mapping):
        return {"map": {key: _plain(item) for key, item in value.items()}}
    raise TypeError(f"a trace holds no value of type {type(value).__name__}")


def _plain_features(tensor: Tensor) -> dict[str, Any]:
    known = ((name, getattr(tensor, name)) for name in _FEATURES)
    return {name: _plain(feature) for name, feature in known if feature is not None}


def _value(plain: Any) -> Value:
    if isinstance(plain, list):
        return tuple(_value(item) for item in plain)
    if not isinstance(plain, dict):
        return plain  # type: ignore[no-any-return]
    [(tag, held)] = plain.items()
    if tag == "missing":
        return Missing(held)
    if tag == "int":
        return int(held, 16)
    if tag == "float":
        return float(struct.unpack(">d", bytes.fromhex(held))[0])
    if tag == "ref":
        return Ref(held[0], held[1])
    if tag == "tensor":
        features: dict[str, Any] = {name: _value(feature) for name, feature in held.items()}
        return Tensor(**features)
    if tag == "set":
        return frozenset(_value(item) for item in held)
    return {key: _value(item) for key, item in held.items()}
