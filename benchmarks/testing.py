"""How long tests, coverage, mutation and `why` take.

Aims: the tests of the essentials in a few seconds, 1,000 mutants in well under a minute, and an answer to
`why` from a recording of a few hundred steps in seconds.
"""

import tempfile
import time
from pathlib import Path

from measure import ROOT, TSPEC, Command, once

from tspec.resolve import load, load_text
from tspec.testing.mutate import mutate
from tspec.testing.play import play
from tspec.trace.meta import write_meta
from tspec.trace.write import TraceWriter

PACKS = ("health", "hygiene", "data", "precision", "replicas", "losses")
PARAMETERS, STEPS, RANKS = 100, 300, 2


def recording(folder: Path) -> int:
    """A made job of many steps and parameters on two ranks; how many records it has."""
    names = [f"layers.{n}.weight" for n in range(PARAMETERS)]
    begin = " ".join(
        f'parameter("{name}") {{ requires_grad = true, dtype = float32, replicas = dp,'
        f' group = param_group("0"), data = tensor(norm: 1.0), grad = tensor(norm: 1.0) }}'
        for name in names
    )
    changed = " ".join(
        f'parameter("{name}").data = changed parameter("{name}").grad = changed' for name in names
    )
    text = (
        "edition 2026 module made use std.torch use std.health "
        f'test "made" {{ events on {RANKS} ranks {{ '
        f'step 0 {{ param_group("0").lr = 0.1 optimizer("sgd") loss = 2.0 {begin} }} '
        f"step 1..{STEPS} {{ optimizer.zero_grad backward optimizer.step(lr: 0.1) {{ {changed} }} }} "
        "} passes loss_is_finite }"
    )
    program = load_text(text).program
    assert program is not None and program.tests[0].script is not None
    trace = play(program.tests[0].script, program.vocabulary)
    folder.mkdir()
    write_meta(folder, trace.world)
    for stream in trace.streams:
        with TraceWriter(folder, stream.rank) as writer:
            writer.add_all(stream.records)
    return sum(len(stream.records) for stream in trace.streams)


def main() -> None:
    """Print the times."""
    paths = ["specs/essentials", *(f"specs/{pack}" for pack in PACKS)]
    program = load([ROOT / path for path in paths], tests=True).program
    assert program is not None
    size = f"{len(program.tests)} tests of {len(program.rules)} rules"
    for what in (
        ["--executors", "interpreter"],
        ["--executors", "interpreter", "--coverage"],
        [],
        ["--executors", "all"],
    ):
        took = once(Command([*TSPEC, "test", *paths, *what, "--no-config"])).wall
        print(f"  tspec test, {size}, {' '.join(what) or 'as it is'}: {took:.1f} s")
    began = time.perf_counter()
    found = mutate(program, program.rules)
    took = time.perf_counter() - began
    changes = sum(each.mutants for each in found.rules)
    print(f"  {changes} mutants: {took:.1f} s, {1000 * took / changes:.0f} s for each 1,000")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "made"
        records = recording(folder)
        print(
            f"  recording: {STEPS} steps, {PARAMETERS} parameters, {RANKS} ranks, {records} records"
        )
        for rule in (
            "std.health.loss_does_not_spike",
            "std.health.gradients_are_finite",
            "std.replicas.replicas_agree",
            "std.hygiene.optimizer_updates_parameters",
        ):
            took = once(Command([*TSPEC, "why", rule, "--trace", str(folder), "--no-config"])).wall
            print(f"  tspec why {rule}: {took:.1f} s")


if __name__ == "__main__":
    main()
