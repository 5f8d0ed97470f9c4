"""The declared fields of one event, read from one call of one callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, Protocol

import torch

from tspec.builtin.events import OF_THE_RETURN, RETURNED
from tspec.runtime.edges import Missing
from tspec.runtime.live.arguments import CallSignature, input_names
from tspec.runtime.live.convert import NUMBERS, Namer, converter, only_element, tensors_in
from tspec.runtime.live.cuda.transfer import in_transfer
from tspec.runtime.live.evaluate import NameReader, NothingThereError, compiled
from tspec.runtime.live.watch import EventSpec, FieldSpec, TypeTree
from tspec.values import Datum

_ALIASES: Mapping[str, tuple[str, ...]] = {
    "tensors": ("outputs",),
    "tensor": ("input_tensor", "input", "tensor", "output_tensor", "self"),
    "output": ("output_tensor", "output", "gather_list", "tensor_list", "tensor", "object_list"),
    "given": ("input_tensor", "input", "tensor", "input_list", "input_tensor_list", "self"),
    "op": ("reduceOp",),
}
"""Names of the input tensor, output tensor and reduction among a collective's arguments."""

INPUT_NAMES = "input_names"
"""The source of a field that holds the names of a module's `inputs` among the arguments of its
`forward`.
"""

Arguments = tuple[Any, ...]
Keywords = Mapping[str, Any]


class _Call:
    """The arguments of one call, those after `self` from number `first` on, and its result in a tuple once there is one."""

    __slots__ = ("_first", "_inputs", "args", "kwargs", "result")

    def __init__(
        self, args: Arguments, kwargs: Keywords, result: tuple[Any] | None, first: int
    ) -> None:
        self.args = args
        self.kwargs = kwargs
        self.result = result
        self._first = first
        self._inputs: list[torch.Tensor] | None = None

    def inputs(self) -> list[torch.Tensor]:
        """The tensors among the arguments. Several fields read them, and they are searched for once."""
        found = self._inputs
        if found is None:
            args = self.args[self._first :]
            lone = not self.kwargs and len(args) == 1 and isinstance(args[0], torch.Tensor)
            found = self._inputs = list(args) if lone else tensors_in((args, self.kwargs))
        return found


class FaultReporter(Protocol):
    """Reports values that cannot be read, once each."""

    def unread(self, event: str, field: str, why: str) -> None:
        """A field of an event has no value."""


class FieldReader:
    """Reads the fields of an event from calls of one callable."""

    __slots__ = ("_after", "_before", "_event", "_parameters", "_path", "reads_result")

    def __init__(self, event: EventSpec, path: str, parameters: CallSignature) -> None:
        self._event = event.name
        self._path = path
        self._parameters = parameters
        late = [_reads_result(each) for each in event.fields]
        fields = [_FieldAccess(each, parameters, path) for each in event.fields]
        self._before = [each for each, is_late in zip(fields, late, strict=True) if not is_late]
        self._after = [each for each, is_late in zip(fields, late, strict=True) if is_late]
        self.reads_result = any(late)
        """Some field needs the call's result."""

    def before(
        self, args: Arguments, kwargs: Keywords, namer: Namer, faults: FaultReporter
    ) -> dict[str, Datum]:
        """Fields that the arguments give."""
        if not self._before:
            return {}
        return self._read(self._before, self._call(args, kwargs, None), namer, faults)

    def after(
        self, args: Arguments, kwargs: Keywords, result: Any, namer: Namer, faults: FaultReporter
    ) -> dict[str, Datum]:
        """The fields that need the result of the call."""
        if not self._after:
            return {}
        return self._read(self._after, self._call(args, kwargs, (result,)), namer, faults)

    def argument(self, name: str, args: Arguments, kwargs: Keywords) -> Any:
        """An argument of the call by its name; None if it has none."""
        try:
            return self._parameters.get(name, args, kwargs)
        except KeyError:
            return None

    def of(
        self, values: Mapping[str, Any], namer: Namer, faults: FaultReporter
    ) -> dict[str, Datum]:
        """All fields, from values that a mechanism has at hand instead of arguments."""
        found = {}
        for each in (*self._before, *self._after):
            try:
                found[each.name] = each.convert(each.from_values(values, namer), namer)
            except Exception as why:  # an object of the user's may raise anything when it is asked
                faults.unread(self._event, each.name, f"{type(why).__name__}: {why}")
                found[each.name] = Missing.NOT_RECORDED
        return found

    def _call(self, args: Arguments, kwargs: Keywords, result: tuple[Any] | None) -> _Call:
        return _Call(args, kwargs, result, int(self._parameters.method))

    def _read(
        self, fields: list[_FieldAccess], call: _Call, namer: Namer, faults: FaultReporter
    ) -> dict[str, Datum]:
        found = {}
        for each in fields:
            try:
                found[each.name] = each.value(each.get(call, namer), namer)
            except NothingThereError as why:
                found[each.name] = self._nothing_there(each, why, faults)
            except Exception as why:  # an object of the user's may raise anything when it is asked
                if not _is_transformed(call):
                    faults.unread(self._event, each.name, f"{type(why).__name__}: {why}")
                found[each.name] = Missing.NOT_RECORDED
        return found

    def _nothing_there(
        self, field: _FieldAccess, why: NothingThereError, faults: FaultReporter
    ) -> Missing:
        """The value of a field that reads None: absent if its type is optional; otherwise not
        recorded, with a report.
        """
        if field.optional:
            return Missing.ABSENT
        faults.unread(self._event, field.name, str(why))
        return Missing.NOT_RECORDED


def _is_transformed(call: _Call) -> bool:
    """True if an argument is a tensor within `vmap` or `grad`, whose elements nothing can read."""
    given = (each for each in (*call.args, *call.kwargs.values()) if type(each) is torch.Tensor)
    return any(map(torch._C._functorch.is_functorch_wrapped_tensor, given))


class _FieldAccess:
    """The reader of one field. How it is read is decided once, and not at each call."""

    __slots__ = (
        "_from_values",
        "_is_number",
        "_parameters",
        "_path",
        "_slow",
        "convert",
        "get",
        "name",
        "optional",
    )

    def __init__(self, field: FieldSpec, parameters: CallSignature, path: str) -> None:
        self.name = field.name
        self.convert = converter(field.type)
        self.optional = field.type[0] == "optional"
        self._is_number = _is_number(field.type)
        self._parameters = parameters
        self._path = path
        self._from_values = self._reading(field, itemgetter)
        self._slow = self._reading(field, lambda name: self._named(name, _names_group(field)))
        self.get: Callable[[_Call, Namer], Any] = self._quick(field) or self._slow

    def value(self, read: Any, namer: Namer) -> Datum:
        """The value of the field's type. A number that a GPU holds is in transfer."""
        if self._is_number and isinstance(read, torch.Tensor) and read.is_cuda:
            one = only_element(read)
            if one is not None:
                return in_transfer(one, lambda held: self.convert(held, namer))
        return self.convert(read, namer)

    def from_values(self, values: Mapping[str, Any], namer: Namer) -> Datum:
        """The field's value, from the values of names."""
        return self._from_values(values, namer)

    def _quick(self, field: FieldSpec) -> Callable[[_Call, Namer], Any] | None:
        source = field.source
        if source == ("name", "self") and self._parameters.method:
            return lambda call, namer: call.args[0]
        if source == ("name", "result"):
            return lambda call, namer: None if call.result is None else call.result[0]
        if self._tells_return(field):
            return None
        if source is None and self.name == "inputs" and not self._parameters.has("inputs"):
            return lambda call, namer: call.inputs()
        name = self.name if source is None else source[1] if source[0] == "name" else ""
        if self._parameters.has(name) and name not in ("result", "self"):
            return partial(self._argument, name)
        return None

    def _argument(self, name: str, call: _Call, namer: Namer) -> Datum:
        """A parameter of the callable."""
        try:
            return self._parameters.get(name, call.args, call.kwargs)
        except KeyError:  # this call leaves it out
            return self._slow(call, namer)

    def _tells_return(self, field: FieldSpec) -> bool:
        """True if the field is the flag that the call has returned."""
        own = self._parameters.has(RETURNED)
        return field.source is None and self.name == RETURNED and not own

    def _reading(self, field: FieldSpec, names: NameReader) -> Callable[[Any, Namer], Any]:
        """Reads the field from a call, or from what else `names` read its names from."""
        source = field.source
        if self._tells_return(field):
            return lambda call, namer: True
        if source is None:
            read = names(self.name)
            return lambda call, namer: read(call)
        if _names_group(field):
            axis = str(source[1])
            held = names(source[1])
            return lambda call, namer: _group_or_axis(held, call, axis)
        value = compiled(source, names)
        return lambda call, namer: value(call, namer.functions)

    def _named(self, name: str, of_group: bool) -> Callable[[_Call], Any]:
        """The reader of a name: the result, an argument, what calls have by other names, or an attribute of the object."""
        get, has = self._parameters.get, self._parameters.has(name)
        more = self._no_argument(name, of_group)

        def read(call: _Call) -> Any:
            args, kwargs, result = call.args, call.kwargs, call.result
            if result is not None and name == "result":
                return result[0]
            if has or name in kwargs:
                try:
                    return get(name, args, kwargs)
                except KeyError:
                    pass
            return more(call)

        return read

    def _no_argument(self, name: str, of_group: bool) -> Callable[[_Call], Any]:
        """Reads a name that is no argument of the call."""
        parameters, path = self._parameters, self._path
        if name == "self" and parameters.method:
            return lambda call: call.args[0]
        if name == "callable":
            return lambda call: path
        if name == "arguments":
            return lambda call: parameters.plain(call.args, call.kwargs)
        if name == "inputs":
            return lambda call: call.inputs()
        if name == INPUT_NAMES:
            return lambda call: input_names(call.args[0], call.args[1:], call.kwargs)
        aliases = _ALIASES.get(name, ())

        def read(call: _Call) -> Any:
            args, kwargs, result = call.args, call.kwargs, call.result
            for alias in aliases:
                try:
                    return parameters.get(alias, args, kwargs)
                except KeyError:
                    continue
            if name == "output" and result is not None:
                return result[0]
            if parameters.method and args and (not of_group or hasattr(args[0], name)):
                return attribute(args[0], name)
            raise KeyError(name)

        return read


def _is_number(kind: TypeTree) -> bool:
    """True for `bool`, `int` and `float`, and if one of them is optional."""
    [name, *inner] = kind
    return name in NUMBERS or (name == "optional" and _is_number(inner[0]))


def _names_group(field: FieldSpec) -> bool:
    """True if the field is a group that the spec names."""
    return field.type == ("group",) and field.source is not None and field.source[0] == "name"


def _group_or_axis(read: Callable[[Any], Any], call: Any, axis: str) -> Any:
    """What the name of a group stands for in a call; the name of an axis where it is neither an argument nor an
    attribute.
    """
    try:
        return read(call)
    except KeyError:
        return axis


def attribute(thing: Any, name: str) -> Any:
    """An attribute of an object, or None. An optimizer's options are read from its first parameter
    group.
    """
    groups = getattr(thing, "param_groups", None)
    if isinstance(groups, list) and groups and isinstance(groups[0], Mapping) and name in groups[0]:
        return groups[0][name]
    return getattr(thing, name, None)


def _reads_result(field: FieldSpec) -> bool:
    return field.reads_result or (field.source is None and field.name in OF_THE_RETURN)


def first_tensor(value: Any) -> torch.Tensor | None:
    """The first tensor in nested lists, tuples and dicts."""
    found = tensors_in(value, limit=1)
    return found[0] if found else None
