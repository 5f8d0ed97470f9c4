"""The place of a part of a spec, as people read it: `checks/training.tspec:9`,
`stdlib/health.tspec:20`.
"""

from __future__ import annotations

import os
from pathlib import Path

from tspec.printable import visible
from tspec.resources import SPECS, shipped
from tspec.source import Source, Span


def place(source: Source, span: Span) -> str:
    """The file and line: below the working folder or what ships relative to it, else in full."""
    line = source.position(span.start).line
    path = Path(os.path.abspath(source.path))
    roots = [Path.cwd(), *(shipped(folder).parent for folder in SPECS)]
    for root in roots:
        if path.is_relative_to(root):
            return visible(f"{path.relative_to(root).as_posix()}:{line}")
    return visible(f"{source.path}:{line}")
