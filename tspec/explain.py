"""The pages of the diagnostics: the meaning of a code, with a bad and a good example."""

from __future__ import annotations

from tspec.diagnostics import did_you_mean
from tspec.resources import PACKAGE


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
