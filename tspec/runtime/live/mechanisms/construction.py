"""Registers optimizers, schedulers, loaders, scalers, wrappers, meshes, stages and modules, built
before or after the start.

It also follows state dicts that are loaded into them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch.utils.data import DataLoader

from tspec.runtime.live.activities import Resumed
from tspec.runtime.live.entities.kind import asked
from tspec.runtime.live.entities.optimizers import holds_groups, steps_made
from tspec.runtime.live.entities.stages import STAGE
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.instrument import dotted
from tspec.runtime.live.living import instances_of
from tspec.runtime.live.watched import Arguments, ReturnListener, Role

FULLY_SHARD = "torch.distributed.fsdp.fully_shard"
FULLY_SHARDED = "torch.distributed.fsdp.FullyShardedDataParallel.__init__"


def install(job: FollowedJob) -> None:
    """Register existing objects, and follow constructors from now on."""
    registers = _registers(job)
    for kind, register in registers.items():
        init = vars(kind).get("__init__")
        if init is not None:
            built = ReturnListener(partial(_register, register))
            job.functions.watch_function(init, Role(f"built {kind.__name__}", built))
    wanted = {
        held: [r for kind, r in registers.items() if issubclass(held, kind)]
        for held in frozenset().union(*map(_family, registers))
    }
    for thing in instances_of(frozenset(wanted)):
        for register in wanted[type(thing)]:
            if _complete(thing):
                register(thing)
    assigned = Role("assigned", ReturnListener(partial(_assigned, job)))
    job.functions.watch_function(nn.Module._load_from_state_dict, assigned, method=True)
    # `copy.deepcopy` and `torch.load` make modules without their constructors.
    copied = ReturnListener(partial(_register, registers[nn.Module]))
    job.functions.watch_function(nn.Module.__setstate__, Role("copied module", copied), method=True)
    for name, path in (("sharded", FULLY_SHARD), ("built sharded", FULLY_SHARDED)):
        sharded = ReturnListener(partial(_sharded, job))
        job.functions.watch_path(Role(name, sharded, path=path))
    load = Role("resumed", ReturnListener(partial(_resume, job)))
    job.functions.watch_method(torch.optim.Optimizer, "load_state_dict", load)
    begins = ReturnListener(partial(_register, job.state.schedulers.begins))
    resumed = Role("resumed schedule", begins)
    job.functions.watch_method(LRScheduler, "load_state_dict", resumed)


def _register(register: Callable[[Any], None], args: Arguments, kwargs: Mapping[str, Any]) -> None:
    """A constructor or a method has returned: register its first argument."""
    register(args[0])


def _family(kind: type) -> frozenset[type]:
    """A class and all that derive from it."""
    return frozenset({kind}).union(*map(_family, type.__subclasses__(kind)))


def _complete(thing: Any) -> bool:
    """Objects whose constructor has not run (prototypes in some caches) have nothing in them."""
    return not issubclass(type(thing), nn.Module) or "_modules" in vars(thing)


def _registers(job: FollowedJob) -> dict[type, Callable[[Any], None]]:
    state = job.state

    def wrapper(thing: Any) -> None:
        state.wrappers.numbered.number(thing)
        job.ranks_known.add_wrapper(thing.process_group)

    def stage(thing: Any) -> None:
        state.stages.numbered.number(thing)
        job.ranks_known.add_stage(asked(thing, "group"))

    def module(thing: Any) -> None:
        state.models.built.add(thing)
        job.built()

    def optimizer(thing: Any) -> None:
        if holds_groups(thing):
            job.built()
            state.optimizers.numbered.number(thing)

    registers: dict[type, Callable[[Any], None]] = {
        torch.optim.Optimizer: optimizer,
        LRScheduler: state.schedulers.built,
        ReduceLROnPlateau: state.schedulers.built,
        DataLoader: lambda thing: _number(state.loaders.numbered.number, thing),
        torch.amp.GradScaler: lambda thing: _number(state.scalers.numbered.number, thing),
        nn.Module: module,
        DistributedDataParallel: wrapper,
    }
    if torch.distributed.is_available():
        from torch.distributed.device_mesh import DeviceMesh  # slow where it is not needed

        registers[DeviceMesh] = job.ranks_known.add_mesh
        stages = dotted.find(f"{STAGE}.__init__")
        if stages is not None:
            registers[stages.holder] = stage
        else:  # the script has not imported them
            built = ReturnListener(partial(_register, stage))
            job.functions.watch_path(Role("built stage", built, path=f"{STAGE}.__init__"))
    return registers


def _number(number: Callable[[Any], int], thing: Any) -> None:
    number(thing)


def _sharded(job: FollowedJob, args: Arguments, kwargs: Mapping[str, Any]) -> None:
    """FSDP has sharded a module. FSDP2 is given a mesh, FSDP1 a mesh or a group."""
    if kwargs.get("dp_mesh_dims") is None:
        groups = (kwargs.get("mesh"), kwargs.get("device_mesh"), asked(args[0], "process_group"))
        job.ranks_known.add_sharded(next((each for each in groups if each is not None), None))


def _assigned(job: FollowedJob, args: Arguments, kwargs: Mapping[str, Any]) -> None:
    """A module has loaded its own tensors. With `assign=True` it now holds the tensors of the state
    dict.
    """
    metadata = args[3] if len(args) > 3 else kwargs.get("local_metadata", {})
    if metadata.get("assign_to_params_buffers"):
        job.state.models.replaced()


def _resume(job: FollowedJob, args: Arguments, kwargs: Mapping[str, Any]) -> None:
    """A loaded optimizer state has learning rates, and a number of steps: continue with that number."""
    job.state.schedulers.loaded(args[0])
    made = steps_made(args[0])
    if made > job.place.step:
        job.do(Resumed(made))
