"""A process of a run: the script, unedited, with an observer around it."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, NoReturn

from tspec.equivalence.cut import Cut
from tspec.equivalence.generator import InputRange
from tspec.equivalence.observing.observer import Observer
from tspec.equivalence.observing.orders import Orders, Perturbation, Sketching
from tspec.equivalence.observing.watch import WATCH
from tspec.equivalence.padding import RealSizes
from tspec.equivalence.peers import Peers, watching
from tspec.equivalence.progress import showing_its_stack
from tspec.equivalence.recording import TensorName
from tspec.equivalence.recording import read as recorded


@dataclass(frozen=True, slots=True)
class Given:
    """The instructions for the processes of a run.

    `cuts` has each rank's shards of parameters under the reference's names. `rewrites` is a folder
    with the tensors that each rank replaces. `inputs` are the ranks that perturb their inputs;
    other ranks receive the outputs of those. `places` gives for each tensor that a rank sketches or
    replaces the reference's name, and the elements of the reference's tensor that the rank holds.
    `input_cuts` has each rank's shards of generated inputs. With
    `stalled`, the processes watch each other: a process ends itself if another one is gone, or if
    none makes progress for that many seconds. It is None if the run is watched from outside.
    """

    command: tuple[str, ...]
    orders: Orders
    cuts: tuple[Mapping[str, tuple[str, Cut, float]], ...] | None = None
    rewrites: Path | None = None
    inputs: tuple[int, ...] = (0,)
    places: tuple[Mapping[TensorName, tuple[str, Cut]], ...] | None = None
    input_cuts: tuple[Mapping[TensorName, Cut], ...] | None = None
    stalled: float | None = None

    def write(self, file: Path) -> None:
        """Write it as JSON."""
        cuts = self.cuts and [
            {name: [known, cut.as_json(), mean] for name, (known, cut, mean) in each.items()}
            for each in self.cuts
        ]
        rewrites = None if self.rewrites is None else str(self.rewrites)
        places = self.places and [
            [[astuple(name), known, cut.as_json()] for name, (known, cut) in each.items()]
            for each in self.places
        ]
        said: dict[str, object] = {"command": self.command, "orders": self._orders(), "cuts": cuts}
        said |= {"rewrites": rewrites, "inputs": self.inputs, "places": places}
        said["stalled"] = self.stalled
        said["input_cuts"] = self.input_cuts and [
            [[astuple(name), cut.as_json()] for name, cut in each.items()]
            for each in self.input_cuts
        ]
        file.write_text(json.dumps(said))

    def has_orders_of(self, file: Path, begins_alike: bool = True) -> bool:
        """True if `file` holds the same orders. The command may differ.

        The seed may differ too if `begins_alike` is false.
        """
        mine, other = json.loads(json.dumps(self._orders())), json.loads(file.read_text())["orders"]
        if not begins_alike:
            mine["seed"] = other["seed"] = None
        return bool(mine == other)

    def _orders(self) -> dict[str, object]:
        """The orders without each rank's own parts, as plain JSON values."""
        sketching = self.orders.sketching
        full = None if sketching is None else sorted(map(astuple, sketching.full))
        said: dict[str, object] = asdict(self.orders)
        own: dict[str, object] = {"cuts": None, "rewrites": {}, "input_cuts": None, "places": None}
        return said | own | {"sketching": full}

    @staticmethod
    def read(file: Path, rank: int) -> tuple[tuple[str, ...], Orders]:
        """Read the command and the orders of one rank."""
        said = json.loads(file.read_text())
        orders: dict[str, Any] = said["orders"]
        if said["cuts"] is not None:
            mine = said["cuts"][rank]
            orders["cuts"] = {
                name: (known, Cut.of_json(cut), mean) for name, (known, cut, mean) in mine.items()
            }
        if orders["perturbation"] is not None:
            changes = rank in said["inputs"]
            orders["perturbation"] = Perturbation(**orders["perturbation"]) if changes else None
        if orders["sketching"] is not None:
            full = frozenset(TensorName(*name) for name in orders["sketching"])
            orders["sketching"] = Sketching(full)
        if said["places"] is not None:
            orders["places"] = {
                TensorName(*name): (known, Cut.of_json(cut))
                for name, known, cut in said["places"][rank]
            }
        if said["rewrites"] is not None:
            orders["rewrites"] = recorded(Path(said["rewrites"]), rank).tensors
        orders["inputs"] = {name: InputRange(**of) for name, of in orders["inputs"].items()}
        if said["input_cuts"] is not None:
            orders["input_cuts"] = {
                TensorName(*name): Cut.of_json(cut) for name, cut in said["input_cuts"][rank]
            }
        orders["padded"] = tuple(
            RealSizes(kind, pattern, None if sizes is None else tuple(sizes))
            for kind, pattern, sizes in (each.values() for each in orders["padded"])
        )
        listed = {each: tuple(orders[each]) for each in ("kinds", "further")}
        return tuple(said["command"]), Orders(**orders | listed)


def seed_of(file: Path) -> int | None:
    """Read the seed of the generated weights; None if the script makes its own."""
    seed: int | None = json.loads(file.read_text())["orders"]["seed"]
    return seed


@contextmanager
def _watching(folder: Path, given: Path, rank: int) -> Iterator[None]:
    """Within the block the other ranks are watched, if the processes are to do that themselves."""
    stalled: float | None = json.loads(given.read_text())["stalled"]
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if stalled is None or world == 1:
        yield
        return
    with watching(Peers(folder, rank, world, stalled)):
        yield


def run(folder: Path, given: Path) -> int:
    """Run the script and record into the folder; the script's own exit status."""
    import torch

    from tspec.runtime.live import LiveJob
    from tspec.runtime.live.follow import ProcessEnd
    from tspec.runtime.live.script import run_script
    from tspec.runtime.sources import Sources
    from tspec.targets.adapters import ADAPTERS
    from tspec.targets.torch.pipeline_stages import PipelineStageAdapter

    rank = int(os.environ.get("RANK", "0"))
    command, orders = Given.read(given, rank)
    random.seed(orders.seed or 0)
    torch.manual_seed(orders.seed or 0)
    adapters = (*ADAPTERS, PipelineStageAdapter())
    observer = Observer(orders, folder, rank)
    job = LiveJob(WATCH, [observer], Sources(Path.cwd()), adapters)
    ending = ProcessEnd(job, lambda: None)
    ending.arm()
    try:
        stack, peers = showing_its_stack(folder, rank), _watching(folder, given, rank)
        with stack, peers, observer.watching_dropout():
            return run_script(command, job)
    finally:
        ending.disarm()


def main() -> NoReturn:
    """The arguments are the folder to record into, and a file that `Given.write` wrote."""
    folder, given = map(Path, sys.argv[1:])
    sys.exit(run(folder, given))


if __name__ == "__main__":
    main()
