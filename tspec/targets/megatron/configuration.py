"""What a job's `TransformerConfig` says that rules read as context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tspec.runtime.live import LiveJob


def know(job: LiveJob, config: Any) -> None:
    """Take `num_layers` from a configuration, unless the script has annotated it."""
    layers = getattr(config, "num_layers", None)
    if isinstance(layers, int):
        job.known.annotated.setdefault("num_layers", layers)
