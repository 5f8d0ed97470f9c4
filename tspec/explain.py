"""The pages of the diagnostics: the meaning of a code, with a bad and a good example."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from tspec.diagnostics import did_you_mean
from tspec.resources import PACKAGE

_WIDTH = 80
_FENCE = re.compile(r"```(?:\w+ (\w+) ?(.*))?")
_ITEM = re.compile(r"- ")


class UnknownCode(ValueError):
    """There is no such code. The message suggests the code that may have been meant."""


def codes() -> tuple[str, ...]:
    """All codes that have a page, in order."""
    return tuple(sorted(page.stem for page in (PACKAGE / "codes").glob("TS*.md")))


def explain(code: str) -> str:
    """The page of a code such as `TS0120`, whatever its case, without a newline at the end.

    Raises UnknownCode.
    """
    known = codes()
    if code.upper() not in known:
        hint = did_you_mean(code.upper(), known)
        raise UnknownCode(f"there is no code `{code}`" + (f"; {hint}" if hint else ""))
    page = PACKAGE / "codes" / f"{code.upper()}.md"
    return page.read_text(encoding="utf-8").rstrip()


def as_text(page: str) -> str:
    """A page for a terminal: the title without its mark, prose in 80 columns, examples as they are."""
    return "\n".join(_lines(page.removeprefix("# ").splitlines()))


def _lines(lines: list[str]) -> Iterator[str]:
    prose: list[str] = []
    in_example = False
    for line in lines:
        fence = _FENCE.fullmatch(line)
        if fence is None and in_example:
            yield line
            continue
        if fence is not None or not line or _ITEM.match(line):
            yield from _wrapped(prose)
            prose = []
        if fence is None:
            if line:
                prose.append(line.strip())
            else:
                yield ""
            continue
        in_example = not in_example
        if in_example:
            kind, file = fence[1].capitalize(), fence[2]
            yield f"{kind}, in {file}:" if file else f"{kind}:"
            yield ""
    yield from _wrapped(prose)


def _wrapped(prose: list[str]) -> list[str]:
    """The lines of a paragraph or of an item of a list."""
    text = " ".join(prose)
    hanging = "  " if _ITEM.match(text) else ""
    return textwrap.wrap(
        text, _WIDTH, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )
