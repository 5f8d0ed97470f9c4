"""Follows the collectives of a step, and which gradients they add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.distributed import distributed_c10d
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from tspec.preflight.facts import Collective, Reduction, adds_up
from tspec.preflight.summands import Summands


class Collectives:
    """The collectives of a rank since the last `clear`.

    `where` returns the module, or pass, in which the script is. `summands` observes all operators.
    """

    def __init__(self, where: Callable[[], str]) -> None:
        self._where = where
        self.summands = Summands()
        self._calls: Counter[tuple[str, tuple[int, ...], str]] = Counter()
        self._elements: Counter[tuple[str, tuple[int, ...], str]] = Counter()
        self._owned: list[tuple[Tensor, tuple[int, ...], str]] = []
        """Parameters whose gradients a library adds up over ranks."""
        self._direct: list[tuple[Tensor, tuple[int, ...], str]] = []
        """The tensors summed by a collective of the script, with its ranks and its name."""
        self._in_library = False

    def clear(self) -> None:
        """Drop all that was recorded."""
        for each in (self._calls, self._elements, self._owned, self._direct):
            each.clear()
        self.summands.clear()

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow collectives, DDP and `fully_shard`."""
        from torch.distributed.fsdp._fully_shard import _fsdp_param_group

        reduce = vars(_fsdp_param_group)["foreach_reduce"]
        build = DistributedDataParallel.__init__

        def sharded(parameters: Any, grads: Any, group: Any, *rest: Any, **options: Any) -> Any:
            both = options.get("all_reduce_group", rest[6] if len(rest) > 6 else None)
            for each in parameters:
                for of in filter(None, (group, both)):
                    ranks = tuple(dist.get_process_group_ranks(of))
                    self._owned.append((each.sharded_param, ranks, "fully_shard"))
            self._in_library = True
            try:
                return reduce(parameters, grads, group, *rest, **options)
            finally:
                self._in_library = False

        def built(model: DistributedDataParallel, *arguments: Any, **options: Any) -> None:
            build(model, *arguments, **options)
            register(model, tuple(dist.get_process_group_ranks(model.process_group)), self._bucket)

        register = DistributedDataParallel.register_comm_hook
        with ExitStack() as stack:
            stack.enter_context(patch.object(_fsdp_param_group, "foreach_reduce", sharded))
            stack.enter_context(patch.object(DistributedDataParallel, "__init__", built))
            nothing = lambda *arguments, **options: None  # noqa: E731
            for name in ("register_comm_hook", "_check_comm_hook"):
                stack.enter_context(patch.object(DistributedDataParallel, name, nothing))
            stack.enter_context(_Watch(self._called, self.summands))
            yield

    def _bucket(self, ranks: tuple[int, ...], bucket: Any) -> torch.futures.Future[Tensor]:
        """The communication hook that DDP calls for a bucket of gradients."""
        for parameter in bucket.parameters():
            self._owned.append((parameter, ranks, "DistributedDataParallel"))
        self._count("all_reduce", ranks, bucket.buffer().numel())
        done: torch.futures.Future[Tensor] = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    def _called(self, name: str, ranks: tuple[int, ...], tensors: Sequence[Tensor]) -> None:
        self._count(name, ranks, sum(each.numel() for each in tensors))
        if not self._in_library and adds_up(name):
            self._direct += [(each, ranks, name) for each in tensors]

    def _count(self, name: str, ranks: tuple[int, ...], elements: int) -> None:
        key = name, ranks, self._where()
        self._calls[key] += 1
        self._elements[key] += elements

    # --- results ----------------------------------------------------------------------------------

    def calls(self) -> tuple[Collective, ...]:
        """The collectives, in the order of their first calls."""
        return tuple(
            Collective(*key, calls=number, elements=self._elements[key])
            for key, number in self._calls.items()
        )

    def reductions(
        self, parameters: Mapping[str, Tensor], grads: Mapping[str, Any]
    ) -> tuple[Reduction, ...]:
        """The gradients that were added up. `parameters` and `grads` are by canonical name."""
        names = {id(parameter): name for name, parameter in parameters.items()}
        found = [
            Reduction(names[id(each)], ranks, by)
            for each, ranks, by in self._owned
            if id(each) in names
        ]
        for name, grad in grads.items():
            if isinstance(grad, Tensor):
                found += [
                    Reduction(name, ranks, by)
                    for each, ranks, by in self._direct
                    if _overlap(_local(each), _local(grad))
                ]
        return tuple(found)


def _local(tensor: Tensor) -> Tensor:
    local = getattr(tensor, "_local_tensor", tensor)
    assert isinstance(local, Tensor)
    return local


def _overlap(one: Tensor, other: Tensor) -> bool:
    """True if two tensors share elements of one storage."""
    if one.untyped_storage()._cdata != other.untyped_storage()._cdata:
        return False
    first, second = sorted((one, other), key=lambda each: each.storage_offset())
    return second.storage_offset() < first.storage_offset() + first.numel()


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Calls `called` for each collective: its name, the ranks of its group, its tensors. Tells `summands` of each operator."""

    def __init__(
        self,
        called: Callable[[str, tuple[int, ...], Sequence[Tensor]], None],
        summands: Summands,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._called = called
        self._summands = summands

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(issubclass(each, DTensor) for each in types):
            return NotImplemented  # it comes again as the collectives and operations that it takes
        library, _, name = func._schema.name.partition("::")
        ranks: tuple[int, ...] = ()
        if library in ("c10d", "_c10d_functional") and name != "wait_tensor":
            ranks = _ranks(args)
            if len(ranks) > 1:
                self._called(name.strip("_"), ranks, _inputs(func, args))
        if name == "_local_scalar_dense" and isinstance(args[0], FakeTensor):
            return _stand_in(args[0].dtype)
        result = func(*args, **(kwargs or {}))
        if len(ranks) > 1:
            self._summands.collected(name.strip("_"), ranks, args, result)
        else:
            self._summands.made(func, name, args, result)
        return result


def _stand_in(dtype: torch.dtype) -> complex | bool:
    """The number 1, which a script reads from a fake tensor without data."""
    if dtype == torch.bool:
        return True
    return 1.0 if dtype.is_floating_point else 1


def _ranks(arguments: Sequence[Any]) -> tuple[int, ...]:
    """The ranks of the group that a collective names, none if it names none."""
    for each in arguments:
        if isinstance(each, torch.ScriptObject) and "ProcessGroup" in str(each._type()):
            return tuple(dist.get_process_group_ranks(dist.ProcessGroup.unbox(each)))
    resolve = vars(distributed_c10d)["_resolve_process_group"]
    for each in reversed(arguments):
        if isinstance(each, str):
            try:
                group = resolve(each)
            except (RuntimeError, ValueError):
                continue
            return tuple(dist.get_process_group_ranks(group))
    return ()


def _inputs(func: Any, arguments: Sequence[Any]) -> list[Tensor]:
    """The tensors that a rank gives to a collective, or those it receives if it gives none.

    Functions of `c10d` have their outputs first, those of `_c10d_functional` their inputs; the
    schemas of both call outputs `output_tensor`, `output_lists`, `outputs` or `out`.
    """
    names = [each.name for each in func._schema.arguments]
    given = [
        each for name, each in zip(names, arguments, strict=False) if not name.startswith("out")
    ]
    return list(_flat(given)) or list(_flat(arguments))


def _flat(given: Any) -> Iterator[Tensor]:
    """The tensors in nested lists."""
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, list | tuple):
        for each in given:
            yield from _flat(each)
