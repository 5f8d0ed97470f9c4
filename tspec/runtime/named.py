"""Compiled hooks that the environment names: they check each process of a job, from its `import torch` to its end."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType


def loaded(hooks: Path) -> ModuleType:
    """The module of a compiled file. Raises OSError if there is none that Python can load."""
    spec = importlib.util.spec_from_file_location("tspec_hooks", hooks)
    if spec is None or spec.loader is None:
        raise OSError(f"{hooks} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def join(argument: str) -> None:
    """Check the rules of a compiled file in this process. One that trains nothing, as a launcher, says nothing."""
    from tspec.runtime.live.follow import HOOKS, ProcessEnd

    hooks = Path(argument).resolve()
    os.environ[HOOKS] = str(hooks)  # children may start in another folder
    installed = loaded(hooks).install()
    installed.__enter__()

    def close() -> None:
        installed.checker.close()
        if installed.job.place.turn or installed.checker.findings.counts:
            installed.checker.summarize()

    ProcessEnd(installed.job, close).arm()
