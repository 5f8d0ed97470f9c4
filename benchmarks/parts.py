"""Which part of tspec takes how much of a step: recording the small GPT, running the shipped pack, and a step that
`--check-steps` leaves out.

    python benchmarks/parts.py            all three
    python benchmarks/parts.py run        the pack only
    python benchmarks/parts.py left-out   steps that are left out

Turns of twenty steps with and without tspec alternate within one process, so that what else the machine does falls on
both alike. The parts are CPU time within functions of tspec, each without the parts that it calls; `calls` is what is
left: the replaced functions, and calls that lead to nothing.
"""

import functools
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jobs import PACK
from measure import CHARGPT, PYTHON

from tspec.schedule import FIRST

TURN = 20
"""Steps of a turn: rules that look at each 5th, 10th or 20th step do the same in each."""
TURNS = 5
"""Turns that are measured of each kind, about half of them with tspec."""
SKIPPED = {"record": 1, "run": 1, "left-out": 2 * FIRST // TURN + 1}
"""Turns before those: the first one has the steps at which most rules look, and the first steps with tspec are not left
out.
"""
WAYS = tuple(SKIPPED)


def script(way: str) -> tuple[str, ...]:
    """The small GPT, as many steps as are measured."""
    steps = (SKIPPED[way] + TURNS - 1) * TURN + 1
    size = ("--layers", "4", "--width", "128", "--evaluate-every", "1000")
    return (str(CHARGPT), "--steps", str(steps), *size)


class Steps:
    """CPU seconds of steps with and without tspec, and of the parts of tspec in them."""

    def __init__(self, skipped: int) -> None:
        self.job: Any = None
        self._skipped = skipped
        self.costs: dict[tuple[bool, int], list[float]] = {}
        """(with tspec, place in the turn) -> seconds of the whole step."""
        self.parts: dict[int, list[Counter[str]]] = {}
        """Place in the turn -> seconds of each part, for each step with tspec."""
        self._count = 0
        self._began = 0.0
        self._inside: list[float] = []
        self._now: Counter[str] = Counter()

    def updated(self, *_: object) -> None:
        """An optimizer has made its update: a step is measured from one to the next."""
        now = time.process_time()
        turn, place = divmod(self._count, TURN)
        if turn >= self._skipped and place:  # the first step of a turn is mixed
            self.costs.setdefault((self.job.active, place), []).append(now - self._began)
            if self.job.active:
                self.parts.setdefault(place, []).append(self._now)
        self._count += 1
        self.job.active = self._count // TURN % 2 == 0
        self._now = Counter()
        self._began = time.process_time()

    def part(self, name: str, owner: type, *methods: str) -> None:
        """Add the time within methods, without parts within them, to a part."""
        for method in methods:
            setattr(owner, method, self._timed(name, getattr(owner, method)))

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            self._inside.append(0.0)
            try:
                return function(*args, **kwargs)
            finally:
                whole = time.process_time() - began
                self._now[name] += whole - self._inside.pop()
                if self._inside:
                    self._inside[-1] += whole

        return timed

    def shown(self) -> str:
        """The ratio of a step with tspec to one without, and each part of the difference."""
        places = range(1, TURN)
        plain = sum(low(self.costs[False, place]) for place in places)
        whole = sum(low(self.costs[True, place]) for place in places)
        names = sorted({name for place in places for one in self.parts[place] for name in one})
        parts = {
            name: sum(low([one[name] for one in self.parts[place]]) for place in places) / plain
            for name in names
        }
        parts["calls"] = (whole - plain) / plain - sum(parts.values())
        listed = ", ".join(f"{name} {100 * cost:.1f}" for name, cost in parts.items())
        return f"{whole / plain:.2f} x of CPU; in % of the plain step: {listed}"


def low(costs: list[float]) -> float:
    """The mean of the lower half: what else the machine does only adds to it."""
    half = sorted(costs)[: (len(costs) + 1) // 2]
    return sum(half) / len(half)


def measured(way: str) -> str:
    """The parts of recording (`record`), of running the essentials (`run`), or of a step that they leave out."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from tspec.record.destination import Destination
    from tspec.record.recorder import Recorder
    from tspec.record.specs import vocabulary
    from tspec.record.start import recorder_of
    from tspec.record.stream import StreamWriter
    from tspec.record.watch import watch_spec
    from tspec.resolve import load
    from tspec.run.child import ChildSettings, checker_of
    from tspec.runtime.checker import Checker
    from tspec.runtime.live import LiveJob
    from tspec.runtime.live.fields import FieldReader
    from tspec.runtime.live.script import run_script
    from tspec.runtime.live.source import LiveSource
    from tspec.runtime.sources import Sources
    from tspec.targets.compile import compile_program

    torch.set_num_threads(1)
    steps, sources = Steps(SKIPPED[way]), Sources(Path.cwd())
    command = script(way)
    steps.part("mechanisms", LiveJob, "_before", "_after")
    steps.part("fields of calls", FieldReader, "before", "after")
    steps.part("reads of tensors", LiveSource, "_readable")
    steps.part("windows", Checker, "begin", "end", "boundary", "passes_over")
    steps.part("rules", Checker, "_evaluate")
    steps.part("samples", Recorder, "begin", "end", "boundary")
    steps.part("writing", StreamWriter, "add", "flush")
    # The samples of a boundary are made while they are written.
    steps.part("samples", Recorder, "_begin", "_end")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if way == "record":
            watch = watch_spec(vocabulary(()))
            sink: Any = recorder_of(Destination(folder / "recording"), watch, " ".join(command))
        else:
            hooks = folder / "hooks.py"
            hooks.write_text(compile_program(load([PACK]).program, target="torch"))
            some = "1/1000000" if way == "left-out" else ""
            settings = ChildSettings(hooks, folder, command, sources, check_steps=some)
            sink, watch = checker_of(settings)
        steps.job = LiveJob(watch, [sink], sources)
        register_optimizer_step_post_hook(steps.updated)
        run_script(command, steps.job)
        sink.close()
    return steps.shown()


def main() -> None:
    """Print what the parts of recording and of running take."""
    if len(sys.argv) > 2:
        print(measured(sys.argv[2]))
        return
    for way in sys.argv[1:] or WAYS:
        words = [PYTHON, __file__, "measure", way]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        print(f"  {way:8} {done.stdout.splitlines()[-1]}", flush=True)


if __name__ == "__main__":
    main()
