"""The adapters of all frameworks that are found without being asked for."""

from __future__ import annotations

from tspec.runtime.live.adapter import Adapter
from tspec.targets.megatron.adapter import Megatron

ADAPTERS: tuple[Adapter, ...] = (Megatron(),)
