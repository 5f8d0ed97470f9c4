"""Scalers of the loss, random generators, and wrappers that reduce gradients."""

from __future__ import annotations

import ctypes
import random
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import torch

from tspec.runtime.edges import Ref
from tspec.runtime.live.entities.kind import ABSENT, UNKNOWN, asked
from tspec.runtime.live.models import ModelRegistry
from tspec.runtime.live.module_tree import unwrapped, walk
from tspec.runtime.live.numbered import NumberedObjects
from tspec.runtime.live.placed import is_flattened
from tspec.runtime.live.ranks import RankTopology
from tspec.values import Datum


class ScalerSubjects:
    """Kind `scaler`: `scaler.0`."""

    def __init__(self) -> None:
        self.numbered = NumberedObjects("scaler")

    def things(self) -> Mapping[str, Any]:
        return {name: each for name, each in self.numbered.alive().items() if each.is_enabled()}

    def name_of(self, thing: Any) -> str | None:
        return self.numbered.name(thing) if self.numbered.knows(thing) else None

    def field(self, name: str, subject: str, thing: Any) -> Datum:
        return float(thing.get_scale()) if name == "scale" else UNKNOWN


class GeneratorSubjects:
    """Kind `generator`: `default` (torch's), `cuda:0`, `python`, `numpy`. Reading draws nothing."""

    def __init__(self) -> None:
        self.more: list[Callable[[], Mapping[str, torch.Tensor]]] = []
        """Functions that give the states of a framework's own random streams, by name."""

    def things(self) -> Mapping[str, str]:
        names = ["default", "python"]
        if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            names.append(f"cuda:{torch.cuda.current_device()}")
        if "numpy.random" in sys.modules:
            names.append("numpy")
        names += [name for more in self.more for name in more()]
        return {name: name for name in names}

    def name_of(self, thing: Any) -> str | None:
        return "default" if thing is torch.default_generator else None

    def field(self, name: str, subject: str, thing: str) -> Datum:
        if name == "name":
            return subject
        return self._state(subject) if name == "state" else ABSENT

    def _state(self, subject: str) -> torch.Tensor:
        if subject == "default":
            return torch.get_rng_state()
        if subject == "python":
            version, words, gauss = random.getstate()
            held = (version, words, 0.0 if gauss is None else gauss, gauss is None)
            return torch.tensor(
                [hash(held)], device="cpu"
            )  # of numbers alone: the same in every process
        if subject == "numpy":
            return torch.tensor(_numpy_state(), dtype=torch.int64, device="cpu")
        for more in self.more:
            if subject in (states := more()):
                return states[subject]
        return torch.cuda.get_rng_state(subject)


def _numpy_state() -> tuple[int, int]:
    """Checksums of the words and the place of numpy's global generator.

    They are read where they lie: `numpy.random.get_state()` takes a tenth of a millisecond. The
    second of two normal numbers, which numpy draws ahead, is not among them.
    """
    generator = sys.modules["numpy.random"].mtrand._rand._bit_generator
    if type(generator).__name__ != "MT19937":
        return (zlib.crc32(repr(generator.state).encode()), 0)
    held = ctypes.string_at(generator.ctypes.state_address, 625 * 4)
    return (zlib.crc32(held), zlib.adler32(held))


class WrapperSubjects:
    """Kind `wrapper`: `wrapper.0`. Things are `DistributedDataParallel` modules."""

    def __init__(self, models: ModelRegistry, ranks: RankTopology) -> None:
        self._models = models
        self._ranks = ranks
        self.numbered = NumberedObjects("wrapper")
        self._known: dict[str, tuple[int, ...]] = {}
        """Module -> the ranks that hold copies of it. A run often lets go of wrappers and groups before its last step is over."""
        self._living: frozenset[str] = frozenset()
        """The wrappers that there were when the step opened."""

    def things(self) -> Mapping[str, Any]:
        return self.numbered.alive()

    def name_of(self, thing: Any) -> str | None:
        return self.numbered.name(thing) if self.numbered.knows(thing) else None

    def field(self, name: str, subject: str, thing: Any) -> Datum:
        models = self._models
        if name == "module":
            held = models.tables.module_by_id.get(id(unwrapped(thing)))
            return ABSENT if held is None else Ref("module", held)
        if name == "parameters":
            names = (models.name_of_parameter(p) for p in vars(thing).get("_module_parameters", ()))
            return frozenset(Ref("parameter", each) for each in names if each is not None)
        return UNKNOWN

    def replicas(self, module: str | None) -> tuple[int, ...] | None:
        """The ranks that hold copies of a module's parameters, because a wrapper is around it.

        One that has a group of this rank alone reduces nothing, and says nothing of copies.
        """
        if module is None:
            return None
        ranks = self._reducing(self._models.module_of(module))
        if ranks is not None:
            self._known[module] = ranks
        return self._known.get(module)

    def _reducing(self, module: Any) -> tuple[int, ...] | None:
        """The ranks among which the wrapper around a module reduces."""
        for wrapper in self.numbered.alive().values():
            if module is not None and any(each is module for _, each in walk(wrapper)):
                ranks = self._ranks.of_group(asked(wrapper, "process_group"))
                return ranks if ranks is not None and len(ranks) > 1 else None
        return None

    def step_opens(self) -> None:
        """Drop the known holders if wrappers changed or there are no process groups: ranks then train separately."""
        living = frozenset(self.things())
        if living != self._living or not self._ranks.process_groups:
            self._known.clear()
        self._living = living

    def holder_of_flat(self, tensor: torch.Tensor) -> tuple[int, ...] | None:
        """This rank alone, if `FullyShardedDataParallel` flattened the tensor, also where a hybrid
        strategy has copies.
        """
        return (self._ranks.rank,) if is_flattened(tensor) else None
