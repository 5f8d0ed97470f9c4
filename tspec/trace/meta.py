"""`meta.json`: the facts about the job as a whole in a recording's folder."""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tspec import __version__
from tspec.trace.columns import FORMAT
from tspec.trace.errors import TraceError

MOST_RANKS = 2**20
"""More ranks than any job has. A larger number is a mistake, and would cost memory."""
META = "meta.json"
"""The file's name."""


@dataclass(frozen=True, slots=True)
class Meta:
    """The known facts about the job: its number of ranks, and texts such as its command."""

    world: int = 0
    """0 where it is not known."""
    texts: Mapping[str, str] = field(default_factory=dict)


def write_meta(folder: Path | str, world: int, meta: Mapping[str, str] | None = None) -> None:
    """Write the number of ranks of the job, and other known facts, to `meta.json`.

    Any rank may do so, and again when more is known: the file is replaced as a whole.
    """
    said = {"format": FORMAT, "tspec": __version__, "world": world, "meta": dict(meta or {})}
    text = json.dumps({**said, "crc32": _checksum(said)}, indent=2) + "\n"
    target = Path(folder) / META
    draft = target.with_name(f".meta-{os.getpid()}-{threading.get_ident()}.json")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, target)
    except OSError as error:
        raise TraceError(f"cannot write `{target}`: {error.strerror}") from error


def read_meta(folder: Path) -> Meta:
    """The contents of `meta.json`, or an empty `Meta` if there is no file. Raises TraceError if the
    file is damaged or malformed.
    """
    path = folder / META
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Meta()
    except OSError as error:
        raise TraceError(f"cannot read `{path}`: {error.strerror}") from error
    try:
        said = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        first = str(error).partition("\n")[0]
        raise TraceError(f"`{path}` is damaged: it is not JSON ({first})") from error
    if not isinstance(said, dict):
        raise TraceError(f"`{path}` is not a trace's: it holds no JSON object")
    return _checked(path, said)


def _checked(path: Path, said: dict[str, Any]) -> Meta:
    number = _integer(path, said, "format", 1, 2**31)
    if "crc32" in said or 1 < number <= FORMAT:
        claimed = said.pop("crc32", None)
        if claimed != _checksum(said):
            raise TraceError(f"`{path}` is damaged: its checksum does not match")
    refuse_newer(path, number, said.get("tspec"))
    world, texts = _integer(path, said, "world", 1, MOST_RANKS), said.get("meta")
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise TraceError(f"`{path}` is wrong: `meta` must be an object of strings")
    return Meta(world, texts)


def refuse_newer(path: Path, number: int, version: object) -> None:
    """Raise TraceError for a format that only a later tspec reads. `version` is that of its writer."""
    if number <= FORMAT:
        return
    known = isinstance(version, str) and 0 < len(version) < 40 and version.isprintable()
    by = f", written by tspec {version}" if known else ""
    needed = f"tspec {version} or later" if known else "a later tspec"
    raise TraceError(
        f"`{path}` is of format {number}{by}; tspec {__version__} reads formats up to {FORMAT}. "
        f"Read it with {needed}"
    )


def _integer(path: Path, said: Mapping[str, Any], key: str, least: int, most: int) -> int:
    value = said.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    shown = "missing" if key not in said else _shown(value)
    raise TraceError(
        f"`{path}` is wrong: `{key}` must be an integer from {least} to {most:,}; it is {shown}"
    )


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value)
    return text if len(text) <= 30 else f"{text[:27]}..."


def _checksum(said: Mapping[str, Any]) -> str:
    """The checksum of the content, whatever its layout."""
    plain = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(plain.encode()):08x}"
