"""Running a training script as `python script.py ARGS` or `python -m module ARGS` would, with a job around it."""

from __future__ import annotations

import ast
import builtins
import gc
import os
import runpy
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import Any

from tspec.runtime.live.instrument.frames import is_ours, run_main
from tspec.runtime.live.job import LiveJob

DEFINED = "__tspec_defined__"


class NoModule(Exception):
    """The module named by `-m` cannot be run. The message is Python's own."""


def run_script(command: Sequence[str], job: LiveJob) -> int:
    """Run `script.py ARGS` or `-m module ARGS` under a job, as Python would; returns its exit status.

    A crash is reported as Python reports it, without the frames of tspec. The job is finished
    where the script ended normally, and closed in any case. Raises OSError if there is no such file.
    """
    text = b"" if command[0] == "-m" else Path(command[0]).read_bytes()
    with _as_main(command) as main, job, _definitions(job):
        try:
            code = (
                _module(command[1], main, job) if command[0] == "-m" else _script(text, main, job)
            )
            gc.freeze()  # tspec and torch stay: full collections in the script do not look at them
            run_main(code, main.__dict__)
        except SystemExit as leaving:
            status = _status(leaving)
            if status == 0:
                job.finish()
            job.close()
            return status
        except NoModule as fault:
            job.close()
            sys.stderr.write(f"{sys.executable}: {fault}\n")
            return 1
        except KeyboardInterrupt:
            job.close()
            return 130
        except BaseException as error:
            job.close()
            sys.excepthook(type(error), error, clean(error))
            return 1
        job.finish()
    return 0


def _status(leaving: SystemExit) -> int:
    """The exit status. A text is written, as Python does, so this is called once."""
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code
    sys.stderr.write(f"{leaving.code}\n")
    return 1


@contextmanager
def _as_main(command: Sequence[str]) -> Iterator[ModuleType]:
    """`__main__`, `sys.argv` and `sys.path[0]` as the script expects them.

    They stay so afterwards: handlers at exit and threads of the script still need them.
    """
    main = ModuleType("__main__")
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    main.__dict__.update(__cached__=None, __spec__=None, __loader__=None, __package__=None)
    sys.modules["__main__"] = main
    if command[0] == "-m":
        sys.argv = ["-m", *command[2:]]
        folder = os.getcwd()
    else:
        main.__file__ = os.path.abspath(command[0])
        sys.argv = list(command)
        folder = str(Path(command[0]).resolve().parent)
    if sys.path:
        sys.path[0] = folder
    yield main


def _script(text: bytes, main: ModuleType, job: LiveJob) -> CodeType:
    """The code of a file, with its path as Python says it in tracebacks and warnings."""
    path = str(main.__file__)
    names = _named_functions(job, Path(path).stem)
    if not names:
        return compile(text, path, "exec", dont_inherit=True)
    return _with_definitions(text, path, names)


def _module(name: str, main: ModuleType, job: LiveJob) -> CodeType:
    """The code of a module, found as `python -m` finds it; `__main__` and `sys.argv` are then the module's.

    Packages around the module are imported. Raises NoModule if it cannot be found or run.
    """
    name, spec, code = runpy._get_module_details(name, NoModule)  # type: ignore[attr-defined]
    main.__dict__.update(
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=spec.loader,
        __package__=spec.parent,
        __spec__=spec,
    )
    sys.argv[0] = spec.origin
    names = _named_functions(job, name)
    text = spec.loader.get_source(name) if names else None
    found: CodeType = code if text is None else _with_definitions(text, spec.origin, names)
    return found


def _with_definitions(text: str | bytes, path: str, names: set[str]) -> CodeType:
    """Code that tells of functions which events name as soon as they are defined."""
    tree = ast.parse(text, path)
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in names:
            decorator: ast.expr = ast.Name(DEFINED, ast.Load())
            node.decorator_list.insert(0, ast.copy_location(decorator, node))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def _named_functions(job: LiveJob, module: str) -> set[str]:
    """Top-level functions of the script that events name.

    `module` is the name under which it could be imported.
    """
    parts = [path.rpartition(".") for path in job.functions.waiting]
    return {function for holder, _, function in parts if holder in (module, "__main__")}


@contextmanager
def _definitions(job: LiveJob) -> Iterator[None]:
    def defined(function: Any) -> Any:
        if isinstance(function, FunctionType):
            job.quietly(lambda: job.functions.defined(function))
        return function

    setattr(builtins, DEFINED, defined)
    try:
        yield
    finally:
        delattr(builtins, DEFINED)


def clean(error: BaseException) -> TracebackType | None:
    """The traceback without frames of tspec. Frames are removed from the error's causes too."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        current.__traceback__ = _without_ours(current.__traceback__)
        current = current.__cause__ or current.__context__
    return error.__traceback__


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while trace is not None:
        if not is_ours(trace.tb_frame.f_code):
            kept.append(trace)
        trace = trace.tb_next
    rest: TracebackType | None = None
    for each in reversed(kept):
        rest = types.TracebackType(rest, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return rest
