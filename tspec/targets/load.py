"""Load generated hooks into this process, so that tracebacks and debuggers show their text."""

from __future__ import annotations

import hashlib
import linecache
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from tspec.resolve.program import rules as r
from tspec.targets.compile import compile_program

if TYPE_CHECKING:
    from tspec.runtime.generated import GeneratedModule


def load(program: r.Program, given: Mapping[str, object] | None = None) -> GeneratedModule:
    """The generated module of a program, loaded. Raises CannotCompile."""
    found: GeneratedModule = module_of(compile_program(program, given=given)).PROGRAM
    return found


def module_of(text: str) -> ModuleType:
    """Run generated text as a module. `linecache` holds the text for as long as the process lives."""
    name = f"tspec_hooks_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    path = f"<{name}.py>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module
