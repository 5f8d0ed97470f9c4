"""HTML: one page without other files, with the findings and their figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, inf, log10

from tspec.printable import lines
from tspec.report.figures import Curve, Figure
from tspec.report.results import Case, Result, Results, case_of

WIDTH, HEIGHT = 960, 260
LEFT, RIGHT, TOP, BOTTOM = 60, 12, 10, 28
"""Margins of a drawing around its scale."""
TICKS = 8
"""The largest number of powers of ten with a label."""
LETTER = 6.8
"""The width of a letter of a label, in the units of a plot, at most."""
NARROW, WIDE = 1, 12
"""The least room for each value, in units of the drawing, from which on dots are not tiny, and large."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A value in a drawing. `beyond`: it is not finite, and stands at the upper end."""

    x: float
    y: float
    says: str
    marked: bool
    beyond: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure in the units of its picture: dots or a line for each curve, and the scale's labels."""

    figure: Figure
    curves: tuple[tuple[Curve, tuple[Dot, ...]], ...]
    ticks: tuple[tuple[float, str], ...]
    named: Dot | None
    """The furthest that is wrong by itself, else the first that is wrong."""
    radius: float
    """The radius of a dot: larger where there are few."""
    half: float
    """Half of the room for a value: a limit begins so far before its first one, and ends after its last."""


@dataclass(frozen=True, slots=True)
class CaseGroup:
    """Rules with one outcome, which `says` puts in words: `passed`."""

    says: str
    cases: tuple[Case, ...]


def groups_of(results: Results) -> tuple[CaseGroup, ...]:
    """The rules by their outcome, in the order of the first of each. Those with findings are among the findings."""
    named = {case_of(each) for each in results.flat()}
    found: dict[str, list[Case]] = {}
    for case in results.cases:
        if (case.file, case.rule) not in named:
            says = ", ".join(filter(None, (case.state, case.message)))
            found.setdefault(says, []).append(case)
    return tuple(CaseGroup(says, tuple(cases)) for says, cases in found.items())


def write(results: Results) -> str:
    """The page as text."""
    import jinja2  # late: other formats do without it

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tspec.report"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    is_lone = len(results.cases) == 1
    page = environment.get_template("page.html.j2").render(
        results=results,
        lone=results.cases if is_lone else (),
        groups=() if is_lone else groups_of(results),
        drawings=[drawing(each) for each in results.figures],
        place=place,
        size=(WIDTH, HEIGHT),
        label_of=label_of,
        frame=(LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM),
    )
    return lines(page) + "\n"


def place(result: Result) -> str:
    """File and line of a finding: in the script if it is known, else of the rule."""
    at = result.in_script
    if at is not None:
        return at.sentence
    return f"{result.file}:{result.line}" if result.line else result.file


def label_of(dot: Dot) -> str:
    """The name of a dot's tensor, shortened in its middle to the room between the dot and the further
    side of the plot.
    """
    name = dot.says.rpartition(": ")[0]
    most = int(max(dot.x, WIDTH - dot.x) / LETTER)
    if len(name) <= most:
        return name
    first = most // 3
    return f"{name[:first]}…{name[first + 1 - most :]}"


def drawing(figure: Figure) -> Drawing:
    """The drawing of a figure: the position of each value."""
    finite = [v for each in figure.curves for v in each.values if v is not None and 0 < v < inf]
    low = floor(log10(min(finite, default=1)))
    high = max(ceil(log10(max(finite, default=1))), low + 1)
    step = (WIDTH - LEFT - RIGHT) / max(len(figure.places), 1)

    def level(value: float) -> float:
        power = low if value <= 0 else high if value == inf else log10(value)
        return HEIGHT - BOTTOM - (power - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def dots(curve: Curve) -> Iterator[Dot]:
        for number, value in enumerate(curve.values):
            if value is not None:
                says = f"{figure.places[number]}: {curve.name} {value:.3g}"
                x = LEFT + step * (number + 0.5)
                yield Dot(x, level(value), says, number in curve.marked, value == inf)

    drawn = tuple((each, tuple(dots(each))) for each in figure.curves)
    marked = {
        role: [dot for curve, of in drawn if curve.role == role for dot in of if dot.marked]
        for role in ("values", "others")
    }
    alone = min(marked["others"], key=lambda dot: dot.y, default=None)
    named = alone or next(iter(marked["values"]), None)
    every = ceil((high - low) / TICKS)
    ticks = tuple((level(10.0**power), f"1e{power}") for power in range(low, high + 1, every))
    radius = 3.5 if step >= WIDE else 2.2 if step >= NARROW else 1.0
    return Drawing(figure, drawn, ticks, named, radius, step / 2)
