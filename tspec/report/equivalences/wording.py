"""The phrases that results and text share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tspec.equivalence.blame import Blame
from tspec.equivalence.compare import TensorComparison
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.skipped_updates import text
from tspec.layout.text import names_text, of_all_layers
from tspec.values import listed

MOST_MODULES = 3
"""The greatest number of names of modules in a line."""


def compared(outcome: Outcome) -> str:
    """The number of tensors compared, and the number that differ."""
    differing = f"{len(outcome.wrong)} differ" if outcome.wrong else "none differs"
    return f"{counted(len(outcome.comparisons), 'tensor')} compared, {differing}"


def not_compared(outcome: Outcome) -> Iterator[str]:
    """A line for each update that both sides skipped, with the number of gradients that are not finite, and one for
    parameters that are gathered after the last step.
    """
    for update, number in Counter(outcome.overflowed.values()).items():
        gradients = counted(number, "gradient")
        yield f"{text(update)}: overflowed on both sides: {gradients} not compared"
    for step, number in Counter(each.step for each in outcome.ungathered).items():
        yield f"step {step}: {counted(number, 'parameter')} gathered after the last step, not compared"


def unchanged(outcome: Outcome) -> Iterator[str]:
    """A line if no parameter of the reference ever changed, which no comparison shows."""
    if outcome.steps_without_change:
        steps = counted(outcome.steps_without_change, "step")
        yield f"no parameter of the reference changed in {steps}: its optimizer may hold other tensors, or a learning rate of 0"


def randomness(outcome: Outcome) -> Iterator[str]:
    """A line on dropout that was switched off, and, if something differs, one on random numbers that
    were drawn all the same.
    """
    if outcome.undropped:
        yield f"dropout is off on both sides, in {_modules(outcome.undropped)}"
    if outcome.drawing and outcome.earliest is not None:
        yield (
            f"random numbers were drawn in forward passes of {_modules(outcome.drawing)}: if ranks draw others than "
            "one device does, tensors differ though the code is right"
        )


def _modules(names: Sequence[str]) -> str:
    """Modules, at most three groups of layers that have the same name."""
    found = of_layers([each or "the script's own code" for each in names])
    return listed(found, MOST_MODULES)


def of_layers(names: Sequence[str]) -> list[str]:
    """Names, of which those of numbered layers are one: `blocks.0..2.norm`."""
    alike: dict[str, dict[str, None]] = {}
    for each in names:
        alike.setdefault(of_all_layers(each), {})[each] = None
    return [names_text(tuple(found)) for found in alike.values()]


def sentence(each: TensorComparison) -> str:
    """A tensor, its error, its tolerance, and the evidence."""
    sure = f" (standard error {each.standard_error:.1%})" if each.standard_error else ""
    error, tolerated = apart(each.error, each.tolerated)
    said = f"{each.name}: error {error}{sure}, tolerated {tolerated}"
    return f"{said}; {each.evidence.says}" if each.evidence.says else said


def apart(error: float, tolerated: float) -> tuple[str, str]:
    """Two numbers with two digits, or with as many more as it takes to tell them apart."""
    for digits in range(2, 17):
        said = f"{error:.{digits}g}", f"{tolerated:.{digits}g}"
        if said[0] != said[1] or error == tolerated:
            break
    return said


def part(each: Blame) -> str:
    """A module, and its wrong part."""
    module = each.module or "the script's own code"
    return f"{module}: {each.part}"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
