"""Generated hooks in a job, for as long as a `with` block runs."""

from __future__ import annotations

from typing import Any

from tspec.runtime.job import Hooks, Program


class Installed:
    """Checks a program's rules in this process."""

    def __init__(
        self, program: Program, model: Any = None, optimizer: Any = None, **options: Any
    ) -> None:
        self.hooks = Hooks(program, **options)
        self.model = model
        self.optimizer = optimizer
