"""All faults of the layouts of a program."""

from __future__ import annotations

from dataclasses import replace

from tspec.diagnostics import Diagnostic, in_order
from tspec.layout.faults import cuts, places, replication
from tspec.resolve import Loaded
from tspec.resolve.program.rules import Program

FAULTS = (cuts.faults, replication.faults, places.faults)


def faults(program: Program) -> tuple[Diagnostic, ...]:
    """The faults of the layouts of a program, by file and place."""
    return in_order(
        found for layout in program.layouts for look in FAULTS for found in look(layout)
    )


def checked(loaded: Loaded) -> Loaded:
    """The loaded program, or none if one of its layouts has a fault."""
    if loaded.program is None or not loaded.program.layouts:
        return loaded
    found = faults(loaded.program)
    program = None if found else loaded.program
    return replace(loaded, program=program, diagnostics=(*loaded.diagnostics, *found))
