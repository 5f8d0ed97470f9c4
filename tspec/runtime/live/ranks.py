"""The rank of this process, the number of ranks, and its process groups."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from tspec.runtime.live.instrument import dotted
from tspec.runtime.live.watch import GroupSpec

_AVAILABLE = dist.is_available()
if _AVAILABLE:
    from torch.distributed.distributed_c10d import get_pg_count


class RankTopology:
    """Looks at the process group if there is one, else at the environment that torchrun sets."""

    def __init__(self, groups: tuple[GroupSpec, ...], say: Callable[[str], None]) -> None:
        """`say` takes a message about a group whose callable fails; it may get the same one again."""
        self._say = say
        self._groups = {group.name: group for group in groups}
        self._of_framework: dict[str, GroupSpec] = {}
        """Groups that findings name even where no rule may."""
        self.meshes: list[Any] = []
        """Device meshes that were built, the earliest first."""
        self._of_mesh: dict[str, tuple[int, ...]] = {}
        self._wrapped: tuple[int, ...] | None = None
        """The ranks of the first wrapper in plain DDP."""
        self._sharded: tuple[int, ...] | None = None
        """The ranks over which FSDP first sharded a model without a mesh whose axes have names."""
        self._staged: tuple[int, ...] | None = None
        """The ranks of the first pipeline."""
        self._place = (int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))
        self._steps = False
        """A step has begun: groups stay as they are until the next one begins."""
        self._placed = False
        """`_place` was read in this step."""
        self._of_callables: dict[str, tuple[int, ...]] = {}
        """The groups that callables have given in this step."""

    def step_opens(self) -> None:
        """A step opens: the script may have built other groups since the last one."""
        self._steps, self._placed = True, False
        self._of_callables.clear()

    @property
    def rank(self) -> int:
        """The rank of this process: 0 as long as it is unknown, and the last known one after the
        process group is destroyed.
        """
        self._look()
        return self._place[0]

    @property
    def world(self) -> int:
        """1 as long as nothing is known."""
        self._look()
        return self._place[1]

    @property
    def process_groups(self) -> int:
        """The number of process groups."""
        return get_pg_count() if _AVAILABLE else 0

    def _look(self) -> None:
        if not self._placed and _started():
            self._place = (dist.get_rank(), dist.get_world_size())
            self._placed = self._steps

    def add_mesh(self, mesh: Any) -> None:
        """A mesh was built. A submesh of a known one is not kept."""
        known = {name for each in self.meshes for name in each.mesh_dim_names or ()}
        if any(name not in known for name in mesh.mesh_dim_names or ()):
            self.meshes.append(mesh)

    def add_wrapper(self, group: Any) -> None:
        """A model was wrapped in DDP over a group: it is `dp` where no mesh has an axis of that
        name.
        """
        if self._wrapped is None:
            self._wrapped = self.of_group(group)

    def add_sharded(self, over: Any) -> None:
        """FSDP shards a model over a mesh or a group (None: all ranks): they are `dp` where no axis of
        any mesh has a name.

        Ranks along an axis with a name may read the same data, as those of a context do.
        """
        if self._sharded is None and not getattr(over, "mesh_dim_names", None):
            self._sharded = self.of_group(over)

    def add_stage(self, group: Any) -> None:
        """A stage of a pipeline was built for a group: it is `pp` where no mesh has an axis of that name."""
        if self._staged is None:
            self._staged = self.of_group(group)

    def add_groups(self, groups: tuple[GroupSpec, ...]) -> None:
        """The axes of a framework. Rules may name those that their vocabulary declares."""
        self._of_framework |= {group.name: group for group in groups}

    def groups(self) -> dict[str, tuple[int, ...]]:
        """This rank's group on each axis, those of the framework included."""
        known = {name: self.on_axis(name) for name in self.axes()}
        known |= {
            name: self._called(spec)
            for name, spec in self._of_framework.items()
            if name not in known
        }
        return {name: ranks for name, ranks in known.items() if ranks is not None}

    def axes(self) -> tuple[str, ...]:
        """Names of all axes that this job has by now and that rules may name."""
        names = ["world"]
        for mesh in self.meshes:
            for name in mesh.mesh_dim_names or ():
                if name not in names and self._in_mesh(name) is not None:
                    names.append(name)
        for name, ranks in self._built().items():
            if ranks is not None and name not in names:
                names.append(name)
        names += [
            name for name in self._groups if name not in names and self.on_axis(name) is not None
        ]
        return tuple(names)

    def on_axis(self, name: str) -> tuple[int, ...] | None:
        """This rank's group on an axis; None if the job has no such axis."""
        if name == "world":
            return tuple(range(self.world))
        group = self._in_mesh(name)
        if group is None:
            group = self._called(self._groups.get(name))
        if group is not None:
            return group
        return self._built().get(name)

    def of_group(self, group: Any) -> tuple[int, ...] | None:
        """The ranks of a process group (None: of the world), of an axis or a group by name, or a list of ranks.

        Functional collectives take a mesh with the number of a dimension too, and lists of all groups.
        """
        if group is None:
            return tuple(range(self.world))
        if isinstance(group, str):
            return self.on_axis(group) or _named(group)
        if isinstance(group, tuple) and len(group) == 2 and hasattr(group[0], "get_group"):
            return self.of_group(group[0].get_group(group[1]))
        if isinstance(group, list) and group and isinstance(group[0], list):
            return next((tuple(each) for each in group if self.rank in each), None)
        if isinstance(group, (list, tuple)):
            return tuple(int(rank) for rank in group)
        if hasattr(group, "mesh") and hasattr(group, "mesh_dim_names"):
            return tuple(int(rank) for rank in group.mesh.flatten().tolist())
        try:
            return tuple(dist.get_process_group_ranks(group))
        except (ValueError, TypeError, KeyError, RuntimeError):
            return None

    def _built(self) -> dict[str, tuple[int, ...] | None]:
        """The axes that wrappers and stages show."""
        replicas = self._wrapped or (None if self.meshes else self._sharded)
        return {"dp": replicas, "pp": self._staged}

    def _in_mesh(self, name: str) -> tuple[int, ...] | None:
        """This rank's part of a mesh; the last known one after the process group is destroyed."""
        if name not in self._of_mesh and _started():
            for mesh in self.meshes:
                if name in (mesh.mesh_dim_names or ()):
                    self._of_mesh[name] = tuple(int(rank) for rank in mesh[name].mesh.tolist())
                    break
        return self._of_mesh.get(name)

    def _called(self, spec: GroupSpec | None) -> tuple[int, ...] | None:
        if spec is None:
            return None
        found = self._of_callables.get(spec.name)
        if found is None:
            found = self._calls(spec)
            if found is not None and self._steps:
                self._of_callables[spec.name] = found
        return found

    def _calls(self, spec: GroupSpec) -> tuple[int, ...] | None:
        """The group that a callable of the framework gives."""
        if not _started():
            return None
        for path in spec.callables:
            place = dotted.find(path)
            function: Callable[[], Any] | None = (
                None if place is None else getattr(place.holder, place.name)
            )
            if function is None:
                continue
            try:
                group = function()
            except AssertionError:  # Megatron's own word for: no such group was set up yet
                continue
            except Exception as fault:
                kind = type(fault).__name__
                self._say(f"group {spec.name} is not known: {path} raised {kind}: {fault}")
                continue
            ranks = None if group is None else self.of_group(group)
            if ranks is not None:
                return ranks
        return None


def _named(group: str) -> tuple[int, ...] | None:
    """The ranks of a process group that goes by its name."""
    if not _started():
        return None
    from torch._C._distributed_c10d import _resolve_process_group

    try:
        return tuple(dist.get_process_group_ranks(_resolve_process_group(group)))  # type: ignore[arg-type]
    except (ValueError, KeyError, RuntimeError):
        return None


def _started() -> bool:
    return _AVAILABLE and dist.is_initialized()
