"""Running a training script as `python script.py ARGS` would, with a job around it."""

from __future__ import annotations

import ast
import builtins
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import Any

from tspec.runtime.live.job import Job

PACKAGE = str(Path(__file__).resolve().parents[2])
DEFINED = "__tspec_defined__"


def run_script(script: str, args: list[str], job: Job) -> int:
    """Run a script under a job; the script's own exit status is returned.

    A crash is reported as Python reports it, without the frames of tspec. The job is finished
    where the script ended normally, and closed in any case. Raises OSError if there is no such file.
    """
    text = Path(script).read_bytes()
    with _as_main(script, args) as main, job, _definitions(job):
        try:
            exec(_compiled(text, script, job), main.__dict__)
        except SystemExit as leaving:
            if _status(leaving) == 0:
                job.finish()
            job.close()
            return _status(leaving)
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
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code
    print(leaving.code, file=sys.stderr)
    return 1


@contextmanager
def _as_main(script: str, args: list[str]) -> Iterator[ModuleType]:
    """`__main__`, `sys.argv` and `sys.path[0]` as the script expects them.

    They stay so afterwards: handlers at exit and threads of the script still need them.
    """
    main = ModuleType("__main__")
    main.__file__ = script
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    main.__dict__.update(__cached__=None, __spec__=None, __loader__=None, __package__=None)
    sys.modules["__main__"] = main
    sys.argv = [script, *args]
    if sys.path:
        sys.path[0] = str(Path(script).resolve().parent)
    yield main


def _compiled(text: bytes, script: str, job: Job) -> CodeType:
    """The script's code; functions that events name are told of as soon as they are defined."""
    names = _named_functions(job, Path(script).stem)
    if not names:
        return compile(text, script, "exec", dont_inherit=True)
    tree = ast.parse(text, script)
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in names:
            told: ast.expr = ast.Name(DEFINED, ast.Load())
            node.decorator_list.insert(0, ast.copy_location(told, node))
    return compile(ast.fix_missing_locations(tree), script, "exec", dont_inherit=True)


def _named_functions(job: Job, stem: str) -> set[str]:
    """Functions at the top of the script that events name."""
    parts = [path.split(".") for path in job.functions.waiting]
    return {each[1] for each in parts if len(each) == 2 and each[0] in (stem, "__main__")}


@contextmanager
def _definitions(job: Job) -> Iterator[None]:
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
    """The traceback without frames of tspec, also those of what caused the error."""
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
        code = trace.tb_frame.f_code
        ours = code.co_filename.startswith(PACKAGE) or any(
            n.startswith("__tspec_") for n in code.co_names
        )
        if not ours:
            kept.append(trace)
        trace = trace.tb_next
    rest: TracebackType | None = None
    for each in reversed(kept):
        rest = types.TracebackType(rest, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return rest
