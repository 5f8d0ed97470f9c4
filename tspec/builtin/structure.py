"""The fields of subjects that say how models and optimizers are built."""

from __future__ import annotations

STRUCTURE = frozenset(
    (
        ("module", "class"),
        ("module", "element"),
        ("module", "leaf"),
        ("module", "name"),
        ("module", "next"),
        ("module", "state_names"),
        ("parameter", "in_list"),
        ("parameter", "module"),
        ("parameter", "name"),
        ("parameter", "names"),
    )
)
"""Kind and field: in a job these are read once for all steps in which `StateSource.version` is the same, and anew with new
subjects."""

BUILT = STRUCTURE | {
    ("module", "parameters"),
    ("optimizer", "class"),
    ("optimizer", "parameters"),
    ("scheduler", "class"),
}
"""Kind and field: as long as `StateSource.version` is the same, these are too."""
