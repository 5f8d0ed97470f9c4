"""Changes as JSON: a list of objects."""

from __future__ import annotations

from typing import Any

from tspec.diff.changes import Changes, DeclarationChange, DeclarationText
from tspec.diff.witness.witness import Witness
from tspec.printable import json_text


def as_json(found: Changes) -> str:
    """A list, worst first, without equivalent declarations."""
    return json_text([_change(each) for each in found.changes]) + "\n"


def _change(change: DeclarationChange) -> dict[str, Any]:
    witnesses = [_witness(each) for each in change.witnesses]
    return {
        "rule": change.name,
        "kind": change.what,
        "change": change.change,
        "old": _written(change.old),
        "new": _written(change.new),
        "old_name": change.old_name or None,
        "witness": witnesses[0] if witnesses else None,
        "witnesses": witnesses,
        "parts": [
            {"part": part.part, "change": part.change, "old": part.old, "new": part.new}
            for part in change.parts
        ],
        "notes": list(change.notes),
    }


def _written(written: DeclarationText | None) -> dict[str, Any] | None:
    if written is None:
        return None
    return {"file": written.file, "line": written.line, "text": written.text}


def _witness(witness: Witness) -> dict[str, Any]:
    return {
        "values": dict(witness.values),
        "old": witness.old,
        "new": witness.new,
        "confirmed": witness.confirmed,
        "given": list(witness.given),
        "text": witness.line,
    }
