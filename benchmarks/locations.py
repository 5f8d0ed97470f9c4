"""What it costs that calls carry the line of the script: steps with it over steps without it, in one run.

    python benchmarks/locations.py                       both scripts, recorded and run
    python benchmarks/locations.py run SCRIPT ARGS...    one of them

Steps with and without take turns within one process, ten at a time, so that what else the machine does falls on both
alike. Aim: at most 1.03.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from jobs import PACK
from measure import CHARGPT, DIGITS, PYTHON

TURN = 10
"""Steps after which rules and recorder do the same again: `every 10 steps`, `every 5 steps`, `every 2 steps`."""
SCRIPTS = (
    (str(DIGITS), "--epochs", "8"),
    (str(CHARGPT), "--steps", "200", "--evaluate-every", "1000"),
)


class Steps:
    """A sink that measures steps, and has lines told in some turns: without, with, with, without, and so on."""

    def __init__(self) -> None:
        self.job = None
        self.costs: dict[tuple[bool, int], list[float]] = {}
        """(with lines, place in the turn) -> CPU seconds of the steps."""
        self._began = 0.0
        self._with = True

    def begin(self, call, source) -> None:
        """A call."""

    def end(self, call, source) -> None:
        """Its end."""

    def boundary(self, span, index, source) -> None:
        """A step is over; a turn is, where its number says so."""
        if span != "step":
            return
        if index > TURN:
            cost = time.process_time() - self._began
            self.costs.setdefault((self._with, index % TURN), []).append(cost)
        if index % TURN == 0:
            self._with = index // TURN % 4 in (2, 3)
            self.job._locations._redacted = not self._with
        self._began = time.process_time()

    def finish(self, source) -> None:
        """The end."""

    def ratio(self) -> float:
        """A turn with lines over one without, each of the median steps at its places."""
        told, untold = (
            sum(statistics.median(self.costs[way, place]) for place in range(TURN))
            for way in (True, False)
        )
        return told / untold


def measured(way: str, script: Sequence[str]) -> float:
    """The ratio of one script, recorded (`record`) or with the essentials checked in it (`run`)."""
    from tspec.record.destination import Destination
    from tspec.record.specs import vocabulary
    from tspec.record.start import recorder_of
    from tspec.record.watch import watch_spec
    from tspec.resolve import load
    from tspec.run.child import ChildSettings, checker_of
    from tspec.runtime.live import LiveJob
    from tspec.runtime.live.script import run_script
    from tspec.runtime.sources import Sources
    from tspec.targets.compile import compile_program

    steps, sources = Steps(), Sources(Path.cwd())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if way == "record":
            watch = watch_spec(vocabulary(()))
            sink = recorder_of(Destination(folder / "recording"), watch, " ".join(script))
        else:
            hooks = folder / "hooks.py"
            hooks.write_text(compile_program(load([PACK]).program, target="torch"))
            sink, watch = checker_of(ChildSettings(hooks, folder, tuple(script), sources))
        steps.job = LiveJob(watch, [sink, steps], sources)
        run_script(script, steps.job)
        sink.close()
    return steps.ratio()


def main() -> None:
    """Print what lines of the script add to recording and to running."""
    if len(sys.argv) > 1:
        print(f"ratio {measured(sys.argv[1], sys.argv[2:]):.3f}")
        return
    for script in SCRIPTS:
        for way in ("record", "run"):
            words = [PYTHON, __file__, way, *script]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            ratio = done.stdout.splitlines()[-1].removeprefix("ratio ")
            print(f"  {Path(script[0]).name:12} {way:8} {ratio} x of CPU", flush=True)


if __name__ == "__main__":
    main()
