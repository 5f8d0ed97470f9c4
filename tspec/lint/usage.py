"""The modules that a file sees."""

from __future__ import annotations

from collections.abc import Mapping

from tspec.resolve.outline import Outline


def visible(file: Outline, by_module: Mapping[str, Outline]) -> frozenset[str]:
    """Names of the modules that a file sees: its own, the modules that it uses, and the modules
    that these use.
    """
    found = {file.name}
    pending = [file]
    while pending:
        for use in pending.pop().uses:
            target = by_module.get(use.module.text)
            if target is not None and target.name not in found:
                found.add(target.name)
                pending.append(target)
    return frozenset(found)
