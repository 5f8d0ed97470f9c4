"""Writes `torch.json`, the names of torch that specs are checked against; run by hand.

`python -m tspec.resolve.torch_names.generate` imports torch and inspects it: the spelling of a name
does not distinguish a module from a function. Checking never imports torch.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path

MODULES = (
    "torch", "torch.amp", "torch.autograd", "torch.backends", "torch.cuda", "torch.distributed",
    "torch.distributed._functional_collectives",
    "torch.distributed.algorithms.ddp_comm_hooks", "torch.distributed.checkpoint",
    "torch.distributed.device_mesh", "torch.distributed.distributed_c10d", "torch.distributed.fsdp",
    "torch.distributed.nn", "torch.distributed.optim", "torch.distributed.pipelining",
    "torch.distributed.tensor", "torch.distributed.tensor.parallel", "torch.fft", "torch.func",
    "torch.linalg", "torch.nn", "torch.nn.attention", "torch.nn.functional", "torch.nn.init",
    "torch.nn.parallel", "torch.nn.utils.clip_grad", "torch.nn.utils.fusion",
    "torch.nn.utils.parametrizations", "torch.nn.utils.parametrize", "torch.nn.utils.prune",
    "torch.nn.utils.rnn", "torch.nn.utils.spectral_norm", "torch.nn.utils.stateless",
    "torch.nn.utils.weight_norm", "torch.optim", "torch.optim.lr_scheduler", "torch.optim.swa_utils",
    "torch.random", "torch.sparse", "torch.special", "torch.utils.checkpoint", "torch.utils.data",
    "torch.utils.data.dataloader", "torch.utils.data.distributed", "torch.serialization",
)  # fmt: skip

# Internals of torch that no rule names; they would be half of the file.
LEFT_OUT = ("torch._inductor", "torch._dynamo", "torch._functorch", "torch.fx", "torch.ao", "torch.testing",
            "torch.onnx", "torch.jit", "torch._C", "torch._refs", "torch._prims", "torch._decomp",
            "torch._subclasses", "torch._export", "torch.export", "torch.package", "torch.masked",
            "torch.quantization", "torch.utils._", "torch._meta", "torch.xpu", "torch.mps", "torch.mtia",
            "torch.profiler", "torch.monitor", "torch.hub", "torch.contrib", "torch.cuda._", "torch._higher",
            "torch._library", "torch._logging", "torch._native", "torch._numpy", "torch.distributed._",
            "torch.distributed.elastic", "torch.distributed.rpc", "torch.multiprocessing")  # fmt: skip


def main() -> None:
    """Import torch, list its names, and write the file beside this one."""
    for name in MODULES:
        importlib.import_module(name)
    import torch

    classes: dict[str, dict[str, object]] = {}
    functions: dict[str, list[str] | None] = {}
    aliases: dict[str, str] = {}
    modules: list[str] = []
    for module in _modules():
        modules.append(module.__name__)
        for name, value in sorted(vars(module).items()):
            _add(f"{module.__name__}.{name}", value, (classes, functions, aliases))
    _add("torch.Tensor", torch.Tensor, (classes, functions, aliases))
    found: dict[str, object] = {
        "version": torch.__version__.split("+")[0],
        "modules": modules,
        "classes": dict(sorted(classes.items())),
        "functions": dict(sorted(functions.items())),
        "aliases": dict(sorted(aliases.items())),
    }
    path = Path(__file__).with_name("torch.json")
    path.write_text(_text(found))
    sys.stdout.write(f"{path}: {len(classes)} classes, {len(functions)} functions\n")


def _text(tables: dict[str, object]) -> str:
    """JSON with one name a line, so that an upgrade of torch is a diff that can be read."""
    sections = []
    for title, table in tables.items():
        if isinstance(table, dict):
            lines = [f"{json.dumps(name)}:{_json(value)}" for name, value in table.items()]
            sections.append(f"{json.dumps(title)}:{{\n" + ",\n".join(lines) + "\n}")
        else:
            sections.append(f"{json.dumps(title)}:{_json(table)}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _modules() -> Iterator[types.ModuleType]:
    for name in sorted(sys.modules):
        module = sys.modules[name]
        # torch.ops and torch.classes are objects that pose as modules: all names exist in them.
        real = type(module) is types.ModuleType
        left_out = name.startswith(LEFT_OUT) and name not in MODULES
        if real and f"{name}.".startswith("torch.") and not left_out:
            yield module


Tables = tuple[dict[str, dict[str, object]], dict[str, "list[str] | None"], dict[str, str]]


def _add(path: str, value: object, tables: Tables) -> None:
    classes, functions, aliases = tables
    if not _is_callable(value) or path.rsplit(".", 1)[1].startswith("__"):
        return
    home: object = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    if inspect.isclass(value):
        canonical = f"{home}.{name}"
        if not canonical.startswith("torch.") or "<" in canonical:
            return
        if canonical not in classes:
            classes[canonical] = _class(value)
        if canonical != path:
            aliases[path] = canonical
    elif inspect.isroutine(value) and _is_of_torch(home):
        functions[path] = _parameters(value)


def _is_callable(value: object) -> bool:
    return callable(value)


def _is_of_torch(home: object) -> bool:
    return home is None or str(home).startswith("torch")


def _class(cls: type) -> dict[str, object]:
    held = dict(vars(cls))
    if f"{cls.__module__}.{cls.__qualname__}" == "torch.Tensor":
        held = {**vars(cls.__base__), **held}  # most methods of tensors are written in C
    methods = {
        name: _parameters(value)
        for name, value in sorted(held.items())
        if callable(value) or isinstance(value, (classmethod, staticmethod))
        if not name.startswith("__") or name in ("__call__", "__next__", "__iter__", "__init__")
    }
    bases = [f"{base.__module__}.{base.__qualname__}" for base in cls.__bases__]
    return {"bases": [base for base in bases if base != "builtins.object"], "methods": methods}


def _parameters(value: object) -> list[str] | None:
    """Names of the parameters, `*args` and `**kwargs` with their stars; None if they are not known."""
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    try:
        parameters = inspect.signature(value).parameters.values()  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return None
    stars: dict[object, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    return [
        f"{stars[kind] if (kind := each.kind) in stars else ''}{each.name}" for each in parameters
    ]


if __name__ == "__main__":
    main()
