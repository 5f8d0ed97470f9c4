"""Texts that a model, a recording or a spec may hold, and that mean something to what shows them."""

from __future__ import annotations

import re

from hypothesis import strategies as st

HOSTILE = (
    "\x1b[31mred\x1b[0m", "\x1b]8;;http://evil.example\x07link\x1b]8;;\x07", "\x9b2J", "\x07", "\x08",
    "a\nb", "a\r\nb", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029",
    "\n::error file=a::forged", "::set-output name=a::b", "   ::warning::forged", "##[error]forged",
    " ::error::forged", "%0A::error::forged", "a" * 90 + "::error::forged",
    "\u202eetad", "\u2066x\u2069", "\u200b", "\ufeff", "\ud800", "\udcff", "\U000e0041", "\ufffe",
    "[red]markup[/red]", "[/]", "[link=http://evil.example]x[/link]", "</testcase>", "]]>", "&amp;",
    "<script>", "<!--", "<details>", "</code>", "`", "``", "```", "~~~", "````", " ` ", "|", "\\|",
    "# heading", "\n# heading", "\n\n# heading\n", "[link](http://evil.example)", "@everyone",
    "![image](http://evil.example)", "http://evil.example", "www.evil.example", "a@evil.example",
    "*bold*", "__bold__", "---", "- item", "1. item", "$(rm)", "{{ x }}", '"', "'", "\\", '"""', "'''",
    "\\u{41}", "\x00", "\x7f", "é", "名", "😀", "",
)  # fmt: skip

texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=4).map("".join),
    st.text(st.characters(), max_size=30),
)
"""Any text, often a hostile one; lone surrogates too."""


def unprintable(text: str, allowed: str = "\n") -> set[str]:
    """Characters that a terminal obeys, or that cannot be seen."""
    return {c for c in text if not c.isprintable() and c not in allowed}


def commands(text: str) -> list[str]:
    """Lines of a log that a CI takes for commands."""
    return [line for line in text.split("\n") if "##[" in line or re.match(r"\s*::(?!:)", line)]
