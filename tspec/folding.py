"""Lines of text that are folded to the width of a screen."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill


@dataclass(frozen=True, slots=True)
class FoldedLine:
    """A line that is folded to the width of a screen. The lines after the first are indented."""

    said: str
    indent: int = 0
    later: int = 2

    def folded(self, width: int) -> str:
        """The folded lines. Words are not cut; a long word reduces the indentation."""
        longest = max(map(len, self.said.split()), default=0)
        later = max(min(self.later, width - longest), 2)
        return fill(
            self.said,
            width,
            initial_indent=" " * self.indent,
            subsequent_indent=" " * later,
            break_long_words=False,
            break_on_hyphens=False,
        )
