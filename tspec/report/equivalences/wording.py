"""The phrases that results and text share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tspec.equivalence.blame import Blame
from tspec.equivalence.compare import TensorComparison
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.skipped_updates import text


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


def sentence(each: TensorComparison) -> str:
    """A tensor, its error, its tolerance, and the evidence."""
    sure = f" (standard error {each.standard_error:.1%})" if each.standard_error else ""
    said = f"{each.name}: error {each.error:.2g}{sure}, tolerated {each.tolerated:.2g}"
    return f"{said}; {each.evidence.says}" if each.evidence.says else said


def part(each: Blame) -> str:
    """A module, and its wrong part."""
    module = each.module or "the script's own code"
    return f"{module}: {each.part}"


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
