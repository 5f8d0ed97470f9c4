"""Faults of a layout that resolves: an index on no rank, or on several ranks that are not declared
replicas.

z3 decides what holds for all sizes (`tspec.logic.tiling`, `tspec.logic.coverage`); the rest is
counted on the mesh. Each fault names one index, one tensor or one setting that shows it.
"""

from tspec.layout.faults.faults import checked as checked
from tspec.layout.faults.faults import faults as faults
