"""Interpreters with this folder on PYTHONPATH find it first: it starts the hooks named in the
environment once torch is imported.

A followed job sets TSPEC_FOLLOW for its child processes. TSPEC_HOOKS is set by the user: the path
of compiled hooks.

Imports nothing of tspec or torch by itself: most children (resource trackers, compilers) never do.
"""

import contextlib
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from pathlib import Path

_HERE = str(Path(__file__).resolve().parent)


def _chain() -> None:
    """Run the sitecustomize that this one hides, if there is one."""
    paths = [path for path in sys.path if path and str(Path(path).resolve()) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


class _TorchArrives(importlib.abc.MetaPathFinder):
    """Waits for `import torch`, and then starts the jobs that the environment names."""

    def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):  # type: ignore[no-untyped-def]
            execute(module)
            _start()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _started() -> list[dict[str, str]]:
    """The functions to call, each with its module and its argument."""
    said: list[dict[str, str]] = json.loads(os.environ.get("TSPEC_FOLLOW", "[]"))
    hooks = os.environ.get("TSPEC_HOOKS")
    if hooks:
        said.append({"module": "tspec.runtime.named", "function": "join", "argument": hooks})
    return said


def _start() -> None:
    for said in _started():
        try:
            module = importlib.import_module(said["module"])
            getattr(module, said["function"])(said["argument"])
        except Exception as fault:  # the child runs, even where it cannot be followed
            _warn(f"process {os.getpid()} is not followed: {str(fault)!a}")
    gc.freeze()  # imported objects stay: full collections in the script skip them


def _warn(message: str) -> None:
    """Log a warning as jobs do. The logging module is found by its path, since tspec itself may be
    missing here.
    """
    path = Path(_HERE).parent / "runtime" / "messages" / "say.py"
    spec = importlib.util.spec_from_file_location("tspec.runtime.messages.say", path)
    if spec is not None and spec.loader is not None:
        say = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(say)
        say.warn(message)


with contextlib.suppress(ImportError):
    _chain()
if _started():
    sys.meta_path.insert(0, _TorchArrives())
